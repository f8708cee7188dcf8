//! Pure: the body of a request to a target: up to three pieces of memory, of known length.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

/// A body in pieces, so that replacing a name in a message copies none of it.
#[derive(Debug, Clone, Default)]
pub struct Outgoing {
    pieces: [Bytes; 3],
    next: usize,
}

impl From<[Bytes; 3]> for Outgoing {
    fn from(pieces: [Bytes; 3]) -> Self {
        Self { pieces, next: 0 }
    }
}

impl From<Bytes> for Outgoing {
    fn from(bytes: Bytes) -> Self {
        Self::from([bytes, Bytes::new(), Bytes::new()])
    }
}

impl Outgoing {
    fn left(&self) -> u64 {
        self.pieces.iter().skip(self.next).map(|piece| piece.len() as u64).sum()
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        while let Some(piece) = this.pieces.get_mut(this.next) {
            this.next += 1;
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(std::mem::take(piece)))));
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    #[tokio::test]
    async fn the_pieces_are_sent_in_order_and_their_length_is_known() {
        let body = Outgoing::from([Bytes::from_static(b"ab"), Bytes::new(), Bytes::from_static(b"c")]);
        assert_eq!(body.size_hint().exact(), Some(3));
        assert_eq!(body.collect().await.unwrap().to_bytes(), "abc");
        assert!(Outgoing::default().is_end_stream());
    }
}
