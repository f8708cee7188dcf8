//! A session's ties to targets: a target session begins at the first use, once, however many calls race, and is kept
//! in the record (DESIGN §3.4).

use std::sync::Arc;

use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;

pub use super::target_session::TargetSession;
use super::{
    Session,
    listen::LISTENED,
    slots::{Found, Outcome},
    table::Sessions,
};
use crate::{
    capabilities::ServerCapabilities,
    fault::Fault,
    target::{
        OnBehalf, Target, exchange,
        handshake::{Introduction, handshake},
    },
};

/// What comes of a handshake that runs. It is bounded, and so is this wait.
async fn opened(mut opening: watch::Receiver<Option<Outcome>>) -> Outcome {
    match opening.wait_for(Option::is_some).await.as_deref() {
        Ok(Some(outcome)) => outcome.clone(),
        // A sender that is gone was dropped by the shutdown.
        Ok(None) | Err(_) => Err(Fault::ShuttingDown),
    }
}

impl Sessions {
    /// The target session of `session` at `target`, begun now where there is none yet.
    ///
    /// # Errors
    /// [`Fault::TargetSessionLost`], or what the handshake failed for; a failure is told to all who wait and not kept.
    pub async fn target_session(
        self: &Arc<Self>,
        session: &Arc<Session>,
        target: &Arc<Target>,
        of: &Arc<OnBehalf>,
    ) -> Outcome {
        // The configuration may have changed since the request looked at it.
        let same = |current: &&Arc<Target>| current.config.uid == target.config.uid;
        let look_up = || {
            let targets = self.targets.load();
            session.look_up(targets.iter().find(same).unwrap_or(target))
        };
        let mut found = look_up();
        if let Found::Renew(lost) = &found {
            self.untie(session, &target.config.uid, lost).await;
            found = look_up();
        }
        let outcome = match found {
            Found::Outcome(outcome) => outcome,
            Found::Opening(opening) => opened(opening).await,
            Found::Begin(target, tell, opening) => {
                self.begin_beside(session, target, of, tell);
                opened(opening).await
            }
            // Lost anew in this very moment.
            Found::Renew(_) => {
                Err(Fault::TargetSessionLost { target: target.alias().to_owned(), ran: false })
            }
        };
        if let Ok(open) = &outcome {
            open.used_by(of);
            // It may change at any time, and looks for what is open behind its entry.
            if self.targets.load().iter().any(|current| Arc::ptr_eq(current, &open.target)) {
                self.listen(session, open);
            } else {
                self.follow_targets(session);
            }
        }
        outcome
    }

    /// Begins a target session in a task of its own: a caller that leaves must not take the others' handshake with it.
    fn begin_beside(
        self: &Arc<Self>,
        session: &Arc<Session>,
        target: Arc<Target>,
        of: &Arc<OnBehalf>,
        tell: watch::Sender<Option<Outcome>>,
    ) {
        let (sessions, session, of) = (Arc::clone(self), Arc::clone(session), Arc::clone(of));
        self.tasks.spawn(async move {
            let outcome = sessions.begin(&session, &target, &of).await;
            let is_hidden = session.settle(&target, &outcome);
            // Looked at behind the entry: an end takes the entries first and finds this one, or came before and is seen
            // here.
            let outcome = match session.end_reason() {
                None => outcome,
                Some(reason) => {
                    if let Some(open) = session.take_target(&target) {
                        target.delete_later(open.newest_wire(), &sessions.tasks);
                    }
                    Err(Fault::SessionEnded(reason))
                }
            };
            let open = outcome.as_ref().ok().map(Arc::clone);
            tell.send_replace(Some(outcome));
            // What changed during the handshake passed it over; whoever waited for it may have gone.
            if let Some(open) = open.filter(|_| is_hidden) {
                sessions.part_from(&session, open);
            }
            if !sessions.targets.load().iter().any(|current| Arc::ptr_eq(current, &target)) {
                sessions.follow_targets(&session);
            }
        });
    }

    async fn begin(
        self: &Arc<Self>,
        session: &Arc<Session>,
        target: &Arc<Target>,
        of: &Arc<OnBehalf>,
    ) -> Outcome {
        let record = session.stored().record;
        let introduction = Introduction {
            of,
            version: session.version,
            client_info: &record.client_info,
            capabilities: record.capabilities.as_str(),
        };
        let established = handshake(&self.tasks, target, introduction)
            .await
            .map_err(|failure| exchange::fault(target, failure))?;
        let ours = TargetSession::new(target, established.wire);
        let kept = self.keep(session, &ours).await;
        match kept {
            Ok(true) => {
                let ours = Arc::new(ours);
                self.prepare(session, &ours, &established.capabilities).await;
                Ok(ours)
            }
            // Another replica was faster: its target session is the session's, ours is nobody's.
            Ok(false) => {
                target.delete_later(ours.wire, &self.tasks);
                session.bound(target).unwrap_or(Err(Fault::UnknownSession))
            }
            Err(fault) => {
                target.delete_later(ours.wire, &self.tasks);
                Err(fault)
            }
        }
    }

    /// What a target session that has just begun still needs before the call that it was begun for.
    async fn prepare(
        self: &Arc<Self>,
        session: &Arc<Session>,
        open: &Arc<TargetSession>,
        announced: &ServerCapabilities,
    ) {
        self.listen(session, open);
        if session.hears(open) {
            let listened = timeout(LISTENED, open.listened.cancelled()).await;
            tracing::trace!(in_time = listened.is_ok(), target = open.target.alias(), "listening");
        }
        let level = session.stored().record.log_level.clone().filter(|_| announced.has("logging"));
        let subscribed =
            session.known_channel().map(|channel| channel.subscribed.at(&open.target.config.uid));
        let subscribed = subscribed.unwrap_or_default();
        if level.is_some() || !subscribed.is_empty() {
            let (sessions, session, open) = (Arc::clone(self), Arc::clone(session), Arc::clone(open));
            self.spawn(
                async move { sessions.catch_up(&session, &open, level.as_deref(), &subscribed).await },
            );
        }
    }

    /// Parts from one target session: it is heard no more, its tie leaves the record, and its target is told.
    pub(super) fn part_from(self: &Arc<Self>, session: &Arc<Session>, parted: Arc<TargetSession>) {
        session.forget(&parted);
        let (sessions, session) = (Arc::clone(self), Arc::clone(session));
        self.tasks.spawn(async move {
            sessions.untie(&session, &parted.target.config.uid, &parted.binding()).await;
            parted.target.delete(&parted.newest_wire()).await;
        });
    }

    /// Listens to every target that the session has used.
    pub fn listen_to_all(self: &Arc<Self>, session: &Arc<Session>, targets: &[Arc<Target>]) {
        for target in targets {
            if let Some(Ok(open)) = session.known(target) {
                self.listen(session, &open);
            }
        }
    }

    /// Tells a target session what its client has told others of it, for as long as that is of use.
    async fn catch_up(
        &self,
        session: &Session,
        open: &TargetSession,
        level: Option<&str>,
        subscribed: &[Box<str>],
    ) {
        if let Some(level) = level {
            open.set_log_level(&self.own_id(), level).await;
        }
        for uri in subscribed {
            let over = [&open.gone, &session.ended, &self.tasks.drain];
            if over.into_iter().any(CancellationToken::is_cancelled) {
                return;
            }
            // It may have been taken back meanwhile.
            let still = session.channel().subscribed.holds(&open.target.config.uid, uri);
            if still && !open.subscribe(&self.own_id(), uri).await {
                return;
            }
        }
    }
}
