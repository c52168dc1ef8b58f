//! The byte stream of a served connection, over TCP or TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tonic::transport::server::Connected;

use crate::connections::{ConnectionInfo, ConnectionSlot};

/// A TCP or TLS stream.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

/// An accepted connection. It occupies its slot until it is dropped.
pub struct ServerStream {
    stream: Box<dyn ByteStream>,
    slot: ConnectionSlot,
}

impl ServerStream {
    pub(crate) fn new(stream: impl ByteStream + 'static, slot: ConnectionSlot) -> ServerStream {
        ServerStream { stream: Box::new(stream), slot }
    }

    /// Returns the stream, or an error if the connection must close. Reads and writes both check this, since a blocked
    /// writer does not read.
    fn open(&mut self, cx: &mut Context<'_>) -> io::Result<Pin<&mut dyn ByteStream>> {
        if self.slot.is_closing(cx) {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            Ok(Pin::new(&mut *self.stream))
        }
    }
}

impl Connected for ServerStream {
    type ConnectInfo = ConnectionInfo;

    fn connect_info(&self) -> ConnectionInfo {
        self.slot.info.clone()
    }
}

impl AsyncRead for ServerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.open(cx)?.poll_read(cx, buffer)
    }
}

impl AsyncWrite for ServerStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.open(cx)?.poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.open(cx)?.poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.open(cx)?.poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.open(cx)?.poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
