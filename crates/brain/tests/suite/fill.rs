//! A store in which very much lies: for tests, and for the benches, which include this file.

use std::path::Path;

use protocol::event::Event;
use protocol::facts::caller::{Actor, TokenDigest};
use protocol::facts::claim::{Claim, Fence};
use protocol::facts::id::SessId;
use protocol::facts::lock::{Holder, Lock};
use protocol::facts::path::{Fold, LogicalPath};
use protocol::facts::scope::Scope;
use protocol::facts::work::WorkKey;
use protocol::world::Pick;
use store::{Decided, Sqlite, SqliteOptions, Store, Sync};

/// How much goes into one transaction of the filling.
const BATCH: usize = 50_000;

/// How much lies in a store.
#[derive(Clone, Copy)]
pub struct Size {
    /// Live claims, besides the one that was there.
    pub claims: usize,
    /// Locks, the same number of each claim.
    pub locks: usize,
    /// Events, all in all.
    pub events: usize,
}

/// Puts claims like this session's, their locks, and renewals of them into a store.
pub fn fill(store: &Path, session: &str, options: SqliteOptions, size: Size) {
    let mut store = Sqlite::open(store, options).expect("the store");
    let id = SessId::parse(session).expect("an id");
    let (world, now) = store.look(&vec![Pick::Claim(id.clone())]).expect("a look");
    let claim = world.claims[&id].clone();
    let nth = |n: usize| SessId::parse(&format!("{session}-{n}")).expect("an id");
    let claims = (0..size.claims).map(|n| {
        Event::ClaimOpened(Claim {
            id: nth(n),
            scope: Scope::parse([format!("area/a{}/b{n}/", n % 100)], Fold::Exact).expect("a scope"),
            token: TokenDigest(format!("{n:064x}")),
            work: WorkKey(format!("fill {n}")),
            fence: Fence(world.fence.0 + 1 + n as u64),
            ..claim.clone()
        })
    });
    let locks = (0..size.locks).map(|n| {
        let path = format!("area/a{}/b{}/f{n}.rs", n % 100, n % size.claims);
        Event::LockTaken(Lock {
            path: LogicalPath::parse(&path, Fold::Exact).expect("a path"),
            holder: Holder::Claim(nth(n % size.claims)),
            owner: claim.owner.clone(),
            fence: Fence(world.fence.0 + 1 + (size.claims + n) as u64),
            taken_at: now,
            ttl: claim.ttl,
        })
    });
    let rest = (world.head as usize + size.claims + size.locks..size.events).map(|n| Event::ClaimRenewed {
        id: nth(n % size.claims),
        fence: None,
    });
    let mut events = claims.chain(locks).chain(rest).peekable();
    let actor = Actor {
        nature: "plain".to_owned(),
        user: "fill".to_owned(),
        host: "fill".to_owned(),
        claim: None,
        proof: None,
    };
    while events.peek().is_some() {
        let batch: Vec<Event> = events.by_ref().take(BATCH).collect();
        let decide = |_: &_, _| {
            Ok(Decided {
                actor: actor.clone(),
                key: None,
                events: batch.clone(),
            })
        };
        store.transact(&vec![], Sync::Relaxed, &decide).expect("a batch");
    }
    let (world, _) = store
        .look(&vec![Pick::Claim(nth(size.claims - 1))])
        .expect("a look");
    assert_eq!((world.head as usize, world.claims.len()), (size.events, 1));
}
