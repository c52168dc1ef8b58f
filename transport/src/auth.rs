//! Authentication of calls. Open calls end when their token is revoked.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use tokio::time::{Sleep, sleep};
use tonic::Status;
use tonic::body::Body;
use tower_service::Service;

use crate::caller::Caller;
use crate::connections::{ConnectionInfo, OpenCall};
use crate::listener::{Listener, Rejection};
use crate::permissions::{Permission, is_client_stream, required_permission};

/// The time limit for receiving a request that is not a client stream.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// The delay of a rejection for callers that are rejected too often.
const PENALTY_DELAY: Duration = Duration::from_secs(1);

/// A service that passes only authorized calls to the inner one.
#[derive(Clone)]
pub struct AuthService<S> {
    listener: Arc<Listener>,
    service: S,
}

impl<S> AuthService<S> {
    pub(crate) fn new(listener: Arc<Listener>, service: S) -> AuthService<S> {
        AuthService { listener, service }
    }
}

impl Listener {
    /// Returns the authorized caller of a request, or the rejection.
    fn authenticate_request(
        &self,
        request: &Request<Body>,
        info: Option<&ConnectionInfo>,
    ) -> Result<Caller, (Rejection, Status)> {
        let path = request.uri().path();
        let permission = required_permission(path);
        let certificate = info.and_then(ConnectionInfo::certificate);
        let caller = match &self.tokens {
            _ if permission == Permission::Public => Caller::anonymous(),
            None => certificate.cloned().unwrap_or_else(Caller::anonymous),
            Some(tokens) => {
                let Some(header) = request.headers().get(AUTHORIZATION) else {
                    let message = "the coordinator requires a token; set --token-file to the output file of \
                                   `agon token create`";
                    return Err((Rejection::NoToken, Status::unauthenticated(message)));
                };
                let secret = header.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
                let Some((role, caller)) = tokens.find(secret.unwrap_or_default()) else {
                    let message = "unknown or revoked token; create another one with `agon token create`";
                    return Err((Rejection::UnknownToken, Status::unauthenticated(message)));
                };
                if !permission.allows(role) {
                    let (role, required) = (role.name(), permission.role().name());
                    let message = format!(
                        "{caller} has role {role}, but {} requires {required}; create a token with `agon token \
                         create --role {required}`",
                        path.trim_start_matches('/'),
                    );
                    return Err((Rejection::Role, Status::permission_denied(message)));
                }
                caller
            }
        };
        // All workers may connect at once; the rate of their submissions is limited by back-pressure.
        if permission != Permission::Worker {
            let key = if caller.is_authenticated() { caller.to_string() } else { address(info) };
            if !self.call_rates.check(&key) {
                let message =
                    "too many calls from one caller; wait a second, or follow runs with `agon watch`";
                return Err((Rejection::Rate, Status::resource_exhausted(message)));
            }
        }
        if let Some(info) = info.filter(|_| permission != Permission::Public)
            && !self.authorize(info, &caller)
        {
            let message = format!(
                "{caller} already holds half of the coordinator's connections; close some, or raise --max-connections"
            );
            return Err((Rejection::Crowded, Status::resource_exhausted(message)));
        }
        Ok(caller)
    }
}

/// Returns the rate-limit key of an anonymous caller.
fn address(info: Option<&ConnectionInfo>) -> String {
    info.map(|info| info.peer().ip().to_string()).unwrap_or_default()
}

type ResponseFuture<E> = Pin<Box<dyn Future<Output = Result<Response<Body>, E>> + Send>>;

impl<S> Service<Request<Body>> for AuthService<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let info = request.extensions().get::<ConnectionInfo>().cloned();
        let caller = match self.listener.authenticate_request(&request, info.as_ref()) {
            Ok(caller) => caller,
            Err((rejection, status)) => {
                let within_limit = self.listener.call_rates.check(&address(info.as_ref()));
                self.listener.reject(rejection, info.map(|info| info.peer()), status.message());
                return Box::pin(async move {
                    if !within_limit {
                        sleep(PENALTY_DELAY).await;
                    }
                    Ok(status.into_http())
                });
            }
        };
        let call = info.as_ref().map(ConnectionInfo::begin_call);
        let until_revoked = || caller.is_authenticated().then(|| caller.until_revoked());
        let (request_revoked, response_revoked) = (until_revoked(), until_revoked());
        request.extensions_mut().insert(caller);
        let deadline = (!is_client_stream(request.uri().path())).then(|| Box::pin(sleep(REQUEST_TIMEOUT)));
        let request = request.map(|body| Body::new(RequestBody { body, revoked: request_revoked, deadline }));
        let response = self.service.call(request);
        Box::pin(async move {
            Ok(response.await?.map(|body| {
                Body::new(ResponseBody { body, revoked: response_revoked, ended: false, _call: call })
            }))
        })
    }
}

type Revoked = Option<Pin<Box<dyn Future<Output = ()> + Send>>>;

fn is_revoked(revoked: &mut Revoked, cx: &mut Context<'_>) -> bool {
    revoked.as_mut().is_some_and(|revoked| revoked.as_mut().poll(cx).is_ready())
}

fn revocation() -> Status {
    Status::unauthenticated(
        "the token was revoked during the call; create another one with `agon token create`",
    )
}

type Polled = Poll<Option<Result<Frame<Bytes>, Status>>>;

/// A request body that fails at its deadline or when the token is revoked.
struct RequestBody {
    body: Body,
    revoked: Revoked,
    deadline: Option<Pin<Box<Sleep>>>,
}

impl RequestBody {
    fn end(&mut self, status: Status) -> Polled {
        (self.revoked, self.deadline) = (None, None);
        self.body = Body::empty();
        Poll::Ready(Some(Err(status)))
    }
}

impl http_body::Body for RequestBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        if is_revoked(&mut self.revoked, cx) {
            return self.end(revocation());
        }
        if self.deadline.as_mut().is_some_and(|deadline| deadline.as_mut().poll(cx).is_ready()) {
            let message =
                format!("the request was incomplete after {REQUEST_TIMEOUT:?}; check the network and retry");
            return self.end(Status::deadline_exceeded(message));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A response body that ends when the token is revoked. Dropping it ends the call.
struct ResponseBody {
    body: Body,
    revoked: Revoked,
    ended: bool,
    _call: Option<OpenCall>,
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        if self.ended {
            return Poll::Ready(None);
        }
        if is_revoked(&mut self.revoked, cx) {
            self.ended = true;
            self.body = Body::empty();
            let (mut trailers, _) = revocation().into_http::<()>().into_parts();
            trailers.headers.remove(http::header::CONTENT_TYPE);
            return Poll::Ready(Some(Ok(Frame::trailers(trailers.headers))));
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may panic")]
mod tests {
    use std::task::Waker;

    use http_body::Body as _;

    use super::*;
    use crate::limits::Limits;
    use crate::tokens::TokenFile;

    /// A body that never ends.
    struct Endless;

    impl http_body::Body for Endless {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn incomplete_request_times_out() {
        let deadline = Some(Box::pin(sleep(Duration::from_millis(10))));
        let mut request = RequestBody { body: Body::new(Endless), revoked: None, deadline };
        let frame = std::future::poll_fn(|cx| Pin::new(&mut request).poll_frame(cx)).await;
        assert_eq!(frame.unwrap().unwrap_err().code(), tonic::Code::DeadlineExceeded);
        assert!(request.is_end_stream(), "the rest is dropped");
    }

    #[derive(Clone)]
    struct EmptyService;

    impl Service<Request<Body>> for EmptyService {
        type Response = Response<Body>;
        type Error = std::convert::Infallible;
        type Future = std::future::Ready<Result<Response<Body>, Self::Error>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<Body>) -> Self::Future {
            std::future::ready(Ok(Response::new(Body::empty())))
        }
    }

    #[tokio::test]
    async fn delays_repeated_rejections() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let secret = TokenFile::update(&path, |file| file.create("v", crate::Role::Viewer, "")).unwrap();
        let limits = Limits { calls_per_second: 2, ..Limits::default() };
        let listener = Listener::new(None, Some(&path), limits, Arc::new(|_| ())).unwrap();
        let mut service = listener.authenticate(EmptyService);
        let mut call = |method: &str, token: Option<&str>| {
            let mut request = Request::builder().uri(format!("http://x/{method}"));
            if let Some(token) = token {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            let mut response = service.call(request.body(Body::empty()).unwrap());
            let polled = response.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            polled.map(|response| response.unwrap().headers().get("grpc-status").is_none())
        };
        let list = "agon.v1.Operator/ListRuns";
        let outcomes: Vec<_> = (0..6).map(|_| call(list, None)).collect();
        let (rejected, delayed) = (Poll::Ready(false), Poll::Pending);
        assert_eq!(outcomes, [rejected, rejected, rejected, rejected, delayed, delayed]);
        assert_eq!(call("grpc.health.v1.Health/Check", None), delayed, "public methods are limited too");
        assert_eq!(call(list, Some(&secret)), Poll::Ready(true), "an authenticated caller has its own limit");
    }
}
