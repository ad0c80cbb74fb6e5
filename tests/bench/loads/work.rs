// SPDX-License-Identifier: Apache-2.0
//! Threads, collections, formatting, panics that are caught: until it is stopped.
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::panic;
use std::thread;

#[derive(Clone, Debug)]
enum Tree {
    Leaf(u64),
    Node(Box<Tree>, Box<Tree>),
}

fn grow(depth: u32, seed: u64) -> Tree {
    if depth == 0 {
        return Tree::Leaf(seed);
    }
    let next = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    Tree::Node(Box::new(grow(depth - 1, next)), Box::new(grow(depth - 1, next >> 7)))
}

fn sum(tree: &Tree) -> u64 {
    match tree {
        Tree::Leaf(value) => *value,
        Tree::Node(left, right) => sum(left).wrapping_add(sum(right)),
    }
}

fn count(round: u64) -> usize {
    let mut words: HashMap<String, Vec<u64>> = HashMap::new();
    for i in 0..3000u64 {
        words.entry(format!("word{}", i.wrapping_mul(round + 7) % 977)).or_default().push(i);
    }
    let mut sorted: BTreeMap<&str, usize> = BTreeMap::new();
    for (word, at) in &words {
        sorted.insert(word, at.len());
    }
    let mut text = String::new();
    for (word, times) in &sorted {
        write!(text, "{word}={times:>5};").unwrap();
    }
    text.len()
}

fn panics(round: u64) -> u64 {
    let caught = panic::catch_unwind(|| {
        if sum(&grow(4, round)) != 1 {
            panic::resume_unwind(Box::new(round));
        }
        0
    });
    caught.unwrap_or_else(|value| *value.downcast::<u64>().unwrap())
}

fn work(start: u64) -> u64 {
    let mut total = start;
    for round in 0..20 {
        total = total.wrapping_add(sum(&grow(10, total)));
        total = total.wrapping_add(count(round) as u64).wrapping_add(panics(round));
    }
    total
}

fn main() {
    let mut total = 0u64;
    loop {
        let threads: Vec<_> = (0..2).map(|i| thread::spawn(move || work(total ^ i))).collect();
        for one in threads {
            total = total.wrapping_add(one.join().unwrap());
        }
        if total == 1 {
            break;
        }
    }
}
