//! The only file that writes to the API server: server-side apply by one field manager, and nothing that is already so.
//!
//! Two writes are none: a Lease is created, so that only one replica can, and keys of a report are removed by a merge
//! patch, since they are the daemons' fields. (Events are published by `events.rs`, through kube's recorder.)

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject},
};
use mooring_crds::{Refusal, condition::reason};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    child::{Child, ChildKind, MANAGER, Whose, whose},
    error::Error,
    key::Key,
    kind::{Applied, Kind, Plan, Prune},
    ledger::{ChildOf, Ledger, Owner, StatusWritten, wanted},
    metrics::Metrics,
    status_json::{leave_out, status_json, undeclared},
    stores::Stores,
};

/// What one request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Writes, and notes what it wrote.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    ledger: Arc<Ledger>,
    metrics: Metrics,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Writer {
    /// A writer that notes what it wrote in `ledger`.
    pub fn new(client: Client, ledger: Arc<Ledger>, metrics: Metrics) -> Self {
        Self { client, ledger, metrics }
    }

    /// Makes everything in the plan so. Writes nothing at all where one of its names is taken by somebody else.
    pub async fn children<K: Kind>(&self, owner: &K, plan: &Plan, stores: &Stores) -> Result<Applied, Error> {
        let key = Key::of(owner);
        let uid = owner.uid().unwrap_or_default();
        let mut found = Vec::with_capacity(plan.children.len());
        for child in &plan.children {
            let of = ChildOf { owner: (K::KIND, &key), kind: child.kind, name: child.name() };
            found.push(self.find(of, &uid, stores).await?);
        }
        let mut applied = Vec::with_capacity(plan.children.len());
        for (child, live) in plan.children.iter().zip(found) {
            applied.push((child.kind, self.child((K::KIND, &key), child, live).await?));
        }
        if let Some(prune) = &plan.prune {
            self.prune(&key.namespace, prune).await?;
        }
        Ok(Applied(applied))
    }

    /// Writes a status, and notes it. What an older schema does not know is left out: the rest must still be told.
    pub async fn status<K: Kind>(&self, object: &K, status: &K::Status) -> Result<(), Error> {
        let key = Key::of(object);
        let resource = ApiResource::erase::<K>(&());
        let status = status_json(status)?;
        let mut known = status.clone();
        let written = loop {
            match self.patch_status(&resource, &key, &known).await {
                Ok(written) => break written,
                Err(Error::Status(source)) => match undeclared(&source) {
                    // Each turn leaves out one field, so that the turns are bounded by the fields.
                    Some(path) if leave_out(&mut known, &path) => {
                        tracing::debug!(
                            kind = K::KIND,
                            field = path.join("."),
                            "the installed schema does not know it"
                        );
                    }
                    _ => return Err(Error::Status(source)),
                },
                Err(error) => return Err(error),
            }
        };
        let noted = StatusWritten {
            status,
            before: object.resource_version(),
            after: written.metadata.resource_version,
        };
        self.ledger.wrote_status((K::KIND, &key), noted);
        Ok(())
    }

    /// Writes the status of an object that cannot be decoded.
    pub async fn mark(&self, resource: &ApiResource, key: &Key, status: &Value) -> Result<(), Error> {
        self.patch_status(resource, key, status).await.map(drop)
    }

    /// Writes a Lease: makes it where it has no version, else replaces that very version.
    pub async fn lease(&self, lease: &Lease) -> kube::Result<()> {
        let api = Api::<Lease>::namespaced(
            self.client.clone(),
            lease.metadata.namespace.as_deref().unwrap_or_default(),
        );
        self.metrics.wrote("Lease");
        if lease.metadata.resource_version.is_none() {
            let params = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
            return api.create(&params, lease).await.map(drop);
        }
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": lease.metadata,
            "spec": lease.spec,
        });
        let params = PatchParams::apply(MANAGER).force();
        api.patch(&lease.name_any(), &params, &Patch::Apply(body)).await.map(drop)
    }

    /// What is there under a child's name: ours, or nothing.
    async fn find(
        &self,
        of: ChildOf<'_>,
        owner: &str,
        stores: &Stores,
    ) -> Result<Option<Arc<DynamicObject>>, Error> {
        let key = Key::new(&of.owner.1.namespace, of.name);
        let seen = stores.child(of.kind, &key);
        let mut verdict = seen.as_ref().map(|object| whose(&object.metadata, owner, false));
        let mut live = seen;
        // A store shows only what has our label, and without managed fields.
        if matches!(verdict, None | Some(Whose::Untold)) {
            let read = bounded(self.api(&of.kind.resource(), &key.namespace).get_opt(&key.name)).await;
            let object = read.map_err(|source| Error::Read {
                kind: of.kind,
                name: key.name.clone(),
                source: Box::new(source),
            })?;
            verdict = object.as_ref().map(|object| whose(&object.metadata, owner, true));
            live = object.map(Arc::new);
        }
        let who = match verdict {
            None | Some(Whose::Ours | Whose::Stray | Whose::Untold) => return Ok(live),
            // Stripped of everything that we set, it has lost our mark, too; its uid it keeps.
            Some(Whose::Nobodys) => {
                let uid = live.as_ref().and_then(|live| live.metadata.uid.as_deref());
                if self.ledger.made(of, uid) {
                    return Ok(live);
                }
                "was not made by Mooring".to_owned()
            }
            Some(Whose::Foreign(controller)) => format!("is controlled by {controller}"),
        };
        Err(Error::ChildConflict(Refusal {
            reason: reason::CHILD_CONFLICT,
            message: format!("{} {} {who}: delete or rename it, or rename this object", of.kind, of.name),
        }))
    }

    async fn child(
        &self,
        owner: Owner<'_>,
        child: &Child,
        live: Option<Arc<DynamicObject>>,
    ) -> Result<DynamicObject, Error> {
        let of = ChildOf { owner, kind: child.kind, name: child.name() };
        let planned = wanted(&child.object)?;
        if let Some(live) = &live
            && self.ledger.settled(of, &planned, &wanted(live)?)
        {
            return Ok((**live).clone());
        }
        self.metrics.wrote(child.kind.as_str());
        let api = self.api(&child.kind.resource(), &owner.1.namespace);
        let params = PatchParams::apply(MANAGER).force();
        let patched = bounded(api.patch(child.name(), &params, &Patch::Apply(&child.object))).await;
        let mut object = patched.map_err(|source| Error::Apply {
            kind: child.kind,
            name: child.name().to_owned(),
            source: Box::new(source),
        })?;
        object.metadata.managed_fields = None;
        let replaced = live.as_ref().and_then(|live| live.metadata.resource_version.as_deref());
        self.ledger.applied(of, &planned, &wanted(&object)?, replaced);
        tracing::info!(kind = owner.0, object = %owner.1, child = %child.kind, name = child.name(), "applied");
        Ok(object)
    }

    async fn prune(&self, namespace: &str, prune: &Prune) -> Result<(), Error> {
        let gone: serde_json::Map<_, _> = prune.keys.iter().map(|key| (key.clone(), Value::Null)).collect();
        let body = json!({ "metadata": { "resourceVersion": prune.version }, "data": gone });
        let params = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        self.metrics.wrote(ChildKind::ConfigMap.as_str());
        let api = self.api(&ChildKind::ConfigMap.resource(), namespace);
        match bounded(api.patch(&prune.config_map, &params, &Patch::Merge(body))).await {
            Ok(_) => Ok(()),
            // A daemon wrote in between; its word wakes us again.
            Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 => Ok(()),
            Err(source) => Err(Error::Prune { name: prune.config_map.clone(), source: Box::new(source) }),
        }
    }

    async fn patch_status(
        &self,
        resource: &ApiResource,
        key: &Key,
        status: &Value,
    ) -> Result<DynamicObject, Error> {
        let body = json!({
            "apiVersion": resource.api_version,
            "kind": resource.kind,
            "metadata": { "name": key.name },
            "status": status,
        });
        self.metrics.wrote(&format!("{}/status", resource.kind));
        let params = PatchParams::apply(MANAGER).force();
        let api = self.api(resource, &key.namespace);
        bounded(api.patch_status(&key.name, &params, &Patch::Apply(body)))
            .await
            .map_err(|source| Error::Status(Box::new(source)))
    }

    fn api(&self, resource: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, resource)
    }
}

async fn bounded<T>(request: impl Future<Output = kube::Result<T>>) -> kube::Result<T> {
    timeout(PATIENCE, request).await.unwrap_or_else(|elapsed| Err(kube::Error::Service(elapsed.into())))
}
