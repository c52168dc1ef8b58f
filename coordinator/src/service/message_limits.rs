//! Message size limits by method. A tonic service has one limit for all methods, so a second instance with a larger limit
//! serves the one method with long messages.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::Semaphore;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::codegen::http::{Request, Response};
use tonic::server::NamedService;

/// A service twice, with two message size limits.
#[derive(Clone)]
pub(crate) struct MethodLimit<S> {
    others: S,
    method: &'static str,
    long: S,
    /// Permits for concurrent calls of the method; further calls wait.
    permits: Arc<Semaphore>,
}

impl<S> MethodLimit<S> {
    /// Routes the method with this path to `long`, at most `concurrent` calls at a time, and the rest to `others`.
    pub(crate) fn new(others: S, method: &'static str, long: S, concurrent: usize) -> MethodLimit<S> {
        MethodLimit { others, method, long, permits: Arc::new(Semaphore::new(concurrent)) }
    }
}

impl<S: NamedService> NamedService for MethodLimit<S> {
    const NAME: &'static str = S::NAME;
}

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<S> Service<Request<Body>> for MethodLimit<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.others.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        if request.uri().path() != self.method {
            return Box::pin(self.others.call(request));
        }
        let (mut long, permits) = (self.long.clone(), Arc::clone(&self.permits));
        Box::pin(async move {
            let _permit = permits.acquire().await;
            long.call(request).await
        })
    }
}
