//! What README shows is true.

use runner::plan::{Known, read, render};

#[test]
fn the_plan_of_the_readme_is_a_plan() {
    let readme = include_str!("../../../../README.md");
    let (_, rest) = readme.split_once("```yaml\n").expect("a plan");
    let (text, _) = rest.split_once("```").expect("its end");
    let (plan, notices) =
        read(text, "plan.yml", &Known::default()).unwrap_or_else(|problems| panic!("{}", render(&problems)));
    assert_eq!(plan.phases.len(), 2);
    assert!(notices.is_empty(), "{notices:?}");
}
