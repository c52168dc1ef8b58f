//! The guard before the services: asks every call who makes it, by one table of rules, and ends what a token opened
//! when that token is revoked.

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
use crate::listener::{Listener, Rejection};
use crate::permissions::{Permission, is_client_stream, required_permission};
use crate::stream::{ConnectionInfo, OpenCall};

/// How long a call may take to say what it asks, unless it is a stream.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// How long whoever is refused too often waits for the answer.
const PENALTY_DELAY: Duration = Duration::from_secs(1);

/// A service that strangers do not reach.
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
    /// Who makes a call, or why it is not made.
    fn identify(
        &self,
        request: &Request<Body>,
        info: Option<&ConnectionInfo>,
    ) -> Result<Caller, (Rejection, Status)> {
        let path = request.uri().path();
        let need = required_permission(path);
        let certificate = info.and_then(ConnectionInfo::certificate);
        let caller = match &self.tokens {
            _ if need == Permission::Public => Caller::anonymous(),
            None => certificate.cloned().unwrap_or_else(Caller::anonymous),
            Some(tokens) => {
                let Some(shown) = request.headers().get(AUTHORIZATION) else {
                    let sentence = "this coordinator asks for a token; give --token-file, a file with what \
                                    `agon token create` printed";
                    return Err((Rejection::NoToken, Status::unauthenticated(sentence)));
                };
                let secret =
                    shown.to_str().ok().and_then(|text| text.strip_prefix("Bearer ")).unwrap_or_default();
                let Some((role, caller)) = tokens.find(secret) else {
                    let sentence = "this token is not known here, or it was revoked; ask for another one \
                                    (`agon token create`)";
                    return Err((Rejection::UnknownToken, Status::unauthenticated(sentence)));
                };
                if !need.allows(role) {
                    let sentence = format!(
                        "{caller} has the role {}, and {} needs {}; make a token for it with `agon token create \
                         --role {}`",
                        role.name(),
                        path.trim_start_matches('/'),
                        need.role().name(),
                        need.role().name()
                    );
                    return Err((Rejection::Role, Status::permission_denied(sentence)));
                }
                caller
            }
        };
        // Workers call when they connect, all of them at once if need be; what they send is held back otherwise.
        if need != Permission::Worker {
            let who = if caller.is_authenticated() { caller.to_string() } else { address(info) };
            if !self.rates.check(&who) {
                let sentence = "more calls than this coordinator takes from one caller; wait a second, or follow runs \
                                with `agon watch`";
                return Err((Rejection::Rate, Status::resource_exhausted(sentence)));
            }
        }
        if let Some(info) = info.filter(|_| need != Permission::Public)
            && !self.authorize(info, &caller)
        {
            let sentence = format!(
                "{caller} has half of all connections that this coordinator takes, and one caller may have no more; \
                 close some, or raise --max-connections"
            );
            return Err((Rejection::Crowded, Status::resource_exhausted(sentence)));
        }
        Ok(caller)
    }
}

/// Whoever is not known goes by where it comes from.
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
        let caller = match self.listener.identify(&request, info.as_ref()) {
            Ok(caller) => caller,
            Err((refusal, status)) => {
                // What it sends is not read, and whoever is refused too often has to be patient.
                let may = self.listener.rates.check(&address(info.as_ref()));
                self.listener.refuse(refusal, info.map(|info| info.peer()), status.message());
                return Box::pin(async move {
                    if !may {
                        sleep(PENALTY_DELAY).await;
                    }
                    Ok(status.into_http())
                });
            }
        };
        let call = info.as_ref().map(ConnectionInfo::call);
        let watched = caller.is_authenticated();
        let [asking, answering] = [(); 2].map(|()| watched.then(|| caller.until_revoked()));
        request.extensions_mut().insert(caller);
        let deadline = (!is_client_stream(request.uri().path())).then(|| Box::pin(sleep(REQUEST_TIMEOUT)));
        let request = request.map(|body| Body::new(RequestBody { body, revoked: asking, deadline }));
        let answer = self.service.call(request);
        Box::pin(async move {
            let answer = answer.await?;
            Ok(answer
                .map(|body| Body::new(ResponseBody { body, revoked: answering, ended: false, _call: call })))
        })
    }
}

type Revoked = Option<Pin<Box<dyn Future<Output = ()> + Send>>>;

fn is_revoked(revoked: &mut Revoked, cx: &mut Context<'_>) -> bool {
    revoked.as_mut().is_some_and(|revoked| revoked.as_mut().poll(cx).is_ready())
}

fn revocation() -> Status {
    Status::unauthenticated("the token of this call was revoked; ask for another one (`agon token create`)")
}

type Polled = Poll<Option<Result<Frame<Bytes>, Status>>>;

/// What a caller sends, for as long as its token counts and there is deadline for it.
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
            let sentence =
                format!("the call was not whole after {REQUEST_TIMEOUT:?}; ask again over a better network");
            return self.end(Status::deadline_exceeded(sentence));
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

/// What is answered, for as long as the caller's token counts. The call is over when this is dropped.
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

    /// What somebody sends who never comes to an end.
    struct Endless;

    impl http_body::Body for Endless {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Polled {
            Poll::Pending
        }
    }

    #[tokio::test]
    async fn a_call_that_is_never_whole_ends() {
        let deadline = Some(Box::pin(sleep(Duration::from_millis(10))));
        let mut asking = RequestBody { body: Body::new(Endless), revoked: None, deadline };
        let frame = std::future::poll_fn(|cx| Pin::new(&mut asking).poll_frame(cx)).await;
        assert_eq!(frame.unwrap().unwrap_err().code(), tonic::Code::DeadlineExceeded);
        assert!(asking.is_end_stream(), "nothing of it is kept");
    }

    #[derive(Clone)]
    struct Answers;

    impl Service<Request<Body>> for Answers {
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
    async fn whoever_is_refused_too_often_waits_for_the_answer_and_others_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens.toml");
        let secret = TokenFile::change(&path, |file| file.create("v", crate::Role::Viewer, "")).unwrap();
        let limits = Limits { calls_per_second: 2, ..Limits::default() };
        let listener = Listener::new(None, Some(&path), limits, Arc::new(|_| ())).unwrap();
        let mut service = listener.authenticate(Answers);
        let mut call = |method: &str, token: Option<&str>| {
            let mut request = Request::builder().uri(format!("http://x/{method}"));
            if let Some(token) = token {
                request = request.header(AUTHORIZATION, format!("Bearer {token}"));
            }
            let mut answer = service.call(request.body(Body::empty()).unwrap());
            let polled = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            polled.map(|answer| answer.unwrap().headers().get("grpc-status").is_none())
        };
        let list = "agon.v1.Operator/ListRuns";
        let told: Vec<_> = (0..6).map(|_| call(list, None)).collect();
        let (refused, waits) = (Poll::Ready(false), Poll::Pending);
        assert_eq!(told, [refused, refused, refused, refused, waits, waits]);
        assert_eq!(call("grpc.health.v1.Health/Check", None), waits, "what needs nothing is counted too");
        assert_eq!(call(list, Some(&secret)), Poll::Ready(true), "who is known has calls of its own");
    }
}
