//! How long a message may be, by the method that it is for: a service has one bound for all of its methods, so that the one
//! method with long messages has the service to itself.

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

/// The same service twice, with two bounds.
#[derive(Clone)]
pub(crate) struct MethodLimit<S> {
    others: S,
    method: &'static str,
    long: S,
    /// So many calls of the method may be read at once; the rest wait.
    turns: Arc<Semaphore>,
}

impl<S> MethodLimit<S> {
    /// `long` for the method of this path, `others` for the rest.
    pub(crate) fn new(others: S, method: &'static str, long: S, at_once: usize) -> MethodLimit<S> {
        MethodLimit { others, method, long, turns: Arc::new(Semaphore::new(at_once)) }
    }
}

impl<S: NamedService> NamedService for MethodLimit<S> {
    const NAME: &'static str = S::NAME;
}

type Answer = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

impl<S> Service<Request<Body>> for MethodLimit<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.others.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Answer {
        if request.uri().path() != self.method {
            return Box::pin(self.others.call(request));
        }
        let (mut long, turns) = (self.long.clone(), Arc::clone(&self.turns));
        Box::pin(async move {
            let _turn = turns.acquire().await;
            long.call(request).await
        })
    }
}
