use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::scope::{Scope, ScopeError};

fn scope(text: &str) -> Scope {
    Scope::parse(text.split(' '), Fold::Exact).unwrap()
}

fn path(text: &str) -> LogicalPath {
    LogicalPath::parse(text, Fold::Exact).unwrap()
}

#[test]
fn every_vector_is_right() {
    let mut checked = 0;
    let mut wrong = Vec::new();
    for line in include_str!("scope-vectors.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let fields: Vec<&str> = line.split('\t').collect();
        let [question, left, right, answer] = fields[..] else {
            panic!("{line}")
        };
        let got = match question {
            "overlaps" => {
                let (left, right) = (scope(left), scope(right));
                assert_eq!(
                    left.overlaps(&right),
                    right.overlaps(&left),
                    "not symmetric: {line}"
                );
                left.overlaps(&right)
            }
            "covers" => scope(left).covers(&path(right)),
            other => panic!("{other}"),
        };
        if got != (answer == "yes") {
            wrong.push(line);
        }
        checked += 1;
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(checked > 400, "only {checked} vectors");
}
