//! The policy `@name@`, as a library for `isotherm --policy`.

mod policy;

isotherm_policy::export! {
    name: "@name@",
    title: "@type@",
    paper: "not published",
    help: "Promotes pages that were sampled twice within a window.",
    settings: policy::Settings,
    policy: policy::@type@,
}
