// SPDX-License-Identifier: Apache-2.0
// Rust: iterators, formatting, trait objects, a panic that is caught.
use std::collections::HashMap;
use std::fmt::Write;
use std::hint::black_box;
use std::panic;

trait Shape {
    fn area(&self) -> u64;
}

struct Square(u64);
struct Circle(u64);

impl Shape for Square {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0 * self.0
    }
}

impl Shape for Circle {
    #[inline(never)]
    fn area(&self) -> u64 {
        self.0 * 3
    }
}

struct Guard(u64);

impl Drop for Guard {
    #[inline(never)]
    fn drop(&mut self) {
        black_box(self.0);
    }
}

#[inline(never)]
fn deep(depth: u64) -> u64 {
    let guard = Guard(depth);
    if depth == 0 {
        panic!("deep");
    }
    deep(depth - 1) + guard.0
}

fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(3)), Box::new(Circle(4))];
    let area: u64 = shapes.iter().map(|s| s.area()).sum();
    let mut words: Vec<String> = (0..6).map(|i| format!("{}-{:.2}", i * 7 % 5, i as f64)).collect();
    words.sort();
    let mut text = String::new();
    write!(text, "{:?} {:>8}", words, area).unwrap();
    let mut counts: HashMap<char, usize> = HashMap::new();
    for c in text.chars() {
        *counts.entry(c).or_default() += 1;
    }
    panic::set_hook(Box::new(|_| {}));
    assert!(panic::catch_unwind(|| deep(3)).is_err());
    black_box(counts);
}
