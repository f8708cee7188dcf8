//! What becomes of targets whose configuration is too large for their gateway's.
#![expect(clippy::unwrap_used, reason = "a test panics")]

#[path = "support/manifests.rs"]
mod manifests;

use mooring_crds::condition::reason;
use mooring_crds::{Platform, compile};

use crate::manifests::{ANONYMOUS, SERVICE, gateway, target};

/// The spec of a target whose configuration is about so large, none of its lists longer than it may be.
fn large(kib: usize) -> String {
    let patterns = |many: usize| {
        let one = |number| format!("'{number:04}{}'", "x".repeat(249));
        (0..many).map(one).collect::<Vec<_>>().join(", ")
    };
    let (allow, deny) = (patterns(2 * kib), patterns(2 * kib));
    format!("{{gatewayRefs: [{{name: tools}}], {SERVICE}, tools: {{allow: [{allow}], deny: [{deny}]}}}}")
}

#[test]
fn a_target_that_takes_too_much_of_the_configuration_is_refused_alone() {
    let small = format!("{{gatewayRefs: [{{name: tools}}], {SERVICE}}}");
    let targets =
        [target("ai", "a", 1, &large(65)), target("ai", "b", 2, &large(60)), target("ai", "c", 3, &small)];
    let compiled = compile(&gateway(ANONYMOUS), &targets, &Platform::default()).unwrap();
    let [a, b, c] = compiled.attachments.as_slice() else { panic!("{compiled:?}") };
    let refusal = a.outcome.clone().unwrap_err();
    assert_eq!(refusal.reason, reason::TOO_LARGE);
    assert!(refusal.message.contains("64 KiB") && refusal.message.contains("spec.tools"), "{refusal}");
    assert!(b.outcome.is_ok() && c.outcome.is_ok());
}

#[test]
fn targets_that_are_too_much_together_are_refused_youngest_first_and_the_configuration_can_be_written() {
    let name = |number: u32| format!("t{number:02}");
    let mut targets: Vec<_> = (0..14).map(|n| target("ai", &name(n), n, &large(60))).collect();
    targets.push(target("ai", "small", 20, &format!("{{gatewayRefs: [{{name: tools}}], {SERVICE}}}")));
    let compiled = compile(&gateway(ANONYMOUS), &targets, &Platform::default()).unwrap();
    assert!(serde_json::to_string(&compiled.config).unwrap().len() < 800 * 1024);
    let refused: Vec<_> =
        compiled.attachments.iter().filter_map(|one| Some((&one.name, one.outcome.clone().err()?))).collect();
    let [(twelfth, refusal), (thirteenth, _)] = refused.as_slice() else { panic!("{refused:?}") };
    assert_eq!([twelfth.as_str(), thirteenth.as_str()], ["t12", "t13"], "what is small still fits");
    assert_eq!(refusal.reason, reason::TOO_LARGE);
    assert!(refusal.message.contains("ai/tools") && refusal.message.contains("768 KiB"), "{refusal}");
}
