//! What a call needs and how it goes, by its path: one table for every method there is.

use crate::caller::Role;

/// Who may make a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// Everybody: whether the coordinator lives is no secret.
    Public,
    /// Whoever is known, whatever their role.
    Authenticated,
    /// Workers alone.
    Worker,
    /// Whoever may look.
    Viewer,
    /// Operators alone.
    Operator,
}

impl Permission {
    /// Whether a role is enough.
    pub fn allows(self, role: Role) -> bool {
        match self {
            Permission::Public | Permission::Authenticated => true,
            Permission::Worker => role == Role::Worker,
            Permission::Viewer => role != Role::Worker,
            Permission::Operator => role == Role::Operator,
        }
    }

    /// The role to ask for.
    pub fn role(self) -> Role {
        match self {
            Permission::Worker => Role::Worker,
            Permission::Operator => Role::Operator,
            Permission::Public | Permission::Authenticated | Permission::Viewer => Role::Viewer,
        }
    }
}

/// The calls of operators that change nothing. Whatever else they call needs an operator.
const READ_ONLY: [&str; 5] = ["ListRuns", "ShowRun", "WatchRun", "ListWorkers", "ListAudit"];

/// What the call of a path like `/agon.v1.Operator/ListRuns` needs.
pub fn required_permission(path: &str) -> Permission {
    let mut parts = path.trim_start_matches('/').splitn(2, '/');
    let (service, method) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    match service {
        // To go on watching takes up a slot, and is for whoever is known.
        "grpc.health.v1.Health" if method == "Check" => Permission::Public,
        "agon.v1.Worker" => Permission::Worker,
        "agon.v1.Operator" if READ_ONLY.contains(&method) => Permission::Viewer,
        "agon.v1.Operator" => Permission::Operator,
        // Reflection, and what is not there.
        _ => Permission::Authenticated,
    }
}

/// Whether whoever calls sends one message after the other, for as long as they like.
pub fn is_client_stream(path: &str) -> bool {
    path.starts_with("/agon.v1.Worker/") || path.starts_with("/grpc.reflection.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_streams_is_known() {
        let contract = include_str!("../../proto/agon/v1/agon.proto");
        let mut service = "";
        for line in contract.lines() {
            if let Some(name) = line.strip_prefix("service ") {
                service = name.trim_end_matches([' ', '{']);
            }
            let Some((name, asked)) = line.trim().strip_prefix("rpc ").and_then(|rpc| rpc.split_once('('))
            else {
                continue;
            };
            let path = format!("/agon.v1.{service}/{name}");
            assert_eq!(is_client_stream(&path), asked.starts_with("stream "), "{path}");
        }
    }

    /// By their names the calls of operators say whether they look or do.
    #[test]
    fn what_lists_shows_or_watches_is_for_viewers_and_nothing_else() {
        let contract = include_str!("../../proto/agon/v1/agon.proto");
        let operators = contract.split("service Operator").nth(1).and_then(|rest| rest.split("\n}").next());
        let methods = operators.into_iter().flat_map(|text| text.split("rpc ").skip(1));
        let names: Vec<&str> = methods.filter_map(|method| method.split('(').next()).collect();
        assert!(names.len() >= 14 && names.contains(&"SubmitRun"), "{names:?}");
        for name in &names {
            let looks = ["List", "Show", "Watch"].iter().any(|verb| name.starts_with(verb));
            assert_eq!(READ_ONLY.contains(name), looks, "{name}");
        }
        assert!(READ_ONLY.iter().all(|look| names.contains(look)));
    }

    #[test]
    fn every_role_may_do_what_it_is_for_and_nothing_else() {
        let table = [
            ("/agon.v1.Worker/Session", [true, false, false]),
            ("/agon.v1.Worker/Submit", [true, false, false]),
            ("/agon.v1.Operator/ListRuns", [false, true, true]),
            ("/agon.v1.Operator/WatchRun", [false, true, true]),
            ("/agon.v1.Operator/SubmitRun", [false, true, false]),
            ("/agon.v1.Operator/VoidBouts", [false, true, false]),
            ("/agon.v1.Operator/WhateverComesNext", [false, true, false]),
            ("/grpc.health.v1.Health/Check", [true, true, true]),
            ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", [true, true, true]),
        ];
        for (path, allowed) in table {
            assert_eq!(Role::ALL.map(|role| required_permission(path).allows(role)), allowed, "{path}");
            assert!(
                required_permission(path).allows(required_permission(path).role()),
                "{path}: what is asked for is enough"
            );
        }
        assert_eq!(required_permission("/grpc.health.v1.Health/Check"), Permission::Public);
        assert_ne!(required_permission("/"), Permission::Public);
        assert_eq!(required_permission("/grpc.health.v1.Health/Watch"), Permission::Authenticated);
        assert_ne!(required_permission("agon.v1.Operator"), Permission::Viewer);
    }
}
