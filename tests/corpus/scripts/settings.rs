// Settings that a writer replaces and readers look at, by crossbeam's epochs. Each look is a pin of its own, or one reader holds its pin
// for as long as it runs: then what the writer replaced is never freed.
use crossbeam_epoch::{pin, Atomic, Owned};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;
use std::time::Duration;

struct Settings {
    words: Vec<String>,
}

fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let leaks = words[1] == "leaks";
    let seed: u64 = words[2].parse().unwrap();
    let current = Arc::new(Atomic::new(Settings { words: Vec::new() }));
    for number in 0..3u64 {
        let seen = current.clone();
        std::thread::spawn(move || {
            let held = if leaks && number == 0 { Some(pin()) } else { None };
            let mut found = 0;
            loop {
                let guard = pin();
                found += unsafe { seen.load(SeqCst, &guard).deref() }.words.len();
                drop(guard);
                std::thread::sleep(Duration::from_millis(10));
                if held.is_some() && found == usize::MAX {
                    break;
                }
            }
        });
    }
    let mut state = seed + 77;
    loop {
        let count = 10 + next(&mut state) % 50;
        let words = (0..count).map(|_| format!("setting-{} = {}", next(&mut state) % 500, "v".repeat((next(&mut state) % 60) as usize))).collect();
        let guard = pin();
        let old = current.swap(Owned::new(Settings { words }), SeqCst, &guard);
        unsafe { guard.defer_destroy(old) };
        drop(guard);
        std::thread::sleep(Duration::from_millis(8 + 3 * seed + next(&mut state) % 10));
    }
}
