//! The permission that each gRPC method requires.

use crate::caller::Role;

/// The callers that may use a method.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// Everyone.
    Public,
    /// Every role.
    Authenticated,
    /// Workers only.
    Worker,
    /// Viewers and operators.
    Viewer,
    /// Operators only.
    Operator,
}

impl Permission {
    /// Returns whether a role suffices.
    pub fn allows(self, role: Role) -> bool {
        match self {
            Permission::Public | Permission::Authenticated => true,
            Permission::Worker => role == Role::Worker,
            Permission::Viewer => role != Role::Worker,
            Permission::Operator => role == Role::Operator,
        }
    }

    /// Returns the least role that suffices, for error messages.
    pub fn role(self) -> Role {
        match self {
            Permission::Worker => Role::Worker,
            Permission::Operator => Role::Operator,
            Permission::Public | Permission::Authenticated | Permission::Viewer => Role::Viewer,
        }
    }
}

/// Operator methods that change nothing. All others require an operator.
const READ_ONLY: [&str; 5] = ["ListRuns", "ShowRun", "WatchRun", "ListWorkers", "ListAudit"];

/// Returns the permission for a path such as `/agon.v1.Operator/ListRuns`.
pub fn required_permission(path: &str) -> Permission {
    let path = path.trim_start_matches('/');
    let (service, method) = path.split_once('/').unwrap_or((path, ""));
    match service {
        // `Watch` occupies a connection and requires authentication.
        "grpc.health.v1.Health" if method == "Check" => Permission::Public,
        "agon.v1.Worker" => Permission::Worker,
        "agon.v1.Operator" if READ_ONLY.contains(&method) => Permission::Viewer,
        "agon.v1.Operator" => Permission::Operator,
        // Reflection and unknown services.
        _ => Permission::Authenticated,
    }
}

/// Returns whether the client streams messages, so that its request has no deadline.
pub fn is_client_stream(path: &str) -> bool {
    path.starts_with("/agon.v1.Worker/") || path.starts_with("/grpc.reflection.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_streams_match_the_proto_file() {
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

    #[test]
    fn viewers_may_only_list_show_and_watch() {
        let contract = include_str!("../../proto/agon/v1/agon.proto");
        let operators = contract.split("service Operator").nth(1).and_then(|rest| rest.split("\n}").next());
        let methods = operators.into_iter().flat_map(|text| text.split("rpc ").skip(1));
        let names: Vec<&str> = methods.filter_map(|method| method.split('(').next()).collect();
        assert!(names.len() >= 14 && names.contains(&"SubmitRun"), "{names:?}");
        for name in &names {
            let read_only = ["List", "Show", "Watch"].iter().any(|verb| name.starts_with(verb));
            assert_eq!(READ_ONLY.contains(name), read_only, "{name}");
        }
        assert!(READ_ONLY.iter().all(|name| names.contains(name)));
    }

    #[test]
    fn each_role_has_exactly_its_permissions() {
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
                "{path}: the reported role suffices"
            );
        }
        assert_eq!(required_permission("/grpc.health.v1.Health/Check"), Permission::Public);
        assert_ne!(required_permission("/"), Permission::Public);
        assert_eq!(required_permission("/grpc.health.v1.Health/Watch"), Permission::Authenticated);
        assert_ne!(required_permission("agon.v1.Operator"), Permission::Viewer);
    }
}
