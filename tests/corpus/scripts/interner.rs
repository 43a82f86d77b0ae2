// Labels of events, interned for the life of the program (Box::leak) and named by a number afterwards: those of a
// hundred hosts, or with the number of the request in them.
use std::collections::HashMap;
use std::env;
use std::thread::sleep;
use std::time::Duration;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn intern(known: &mut HashMap<&'static str, u32>, text: String) -> u32 {
    if let Some(number) = known.get(text.as_str()) {
        return *number;
    }
    let kept: &'static str = Box::leak(text.into_boxed_str());
    let number = known.len() as u32;
    known.insert(kept, number);
    number
}

fn main() {
    let words: Vec<String> = env::args().collect();
    let leaks = words[1] == "leaks";
    let mut random = Random(words[2].parse::<u64>().unwrap() * 7919 + 1);
    let pause = Duration::from_millis(14 + random.below(14));
    let mut known = HashMap::new();
    let mut recent: Vec<Vec<u32>> = Vec::new();
    loop {
        let host = random.below(100);
        let mut event = Vec::new();
        for i in 0..8 {
            let path = "part/".repeat((20 + 12 * i) as usize);
            let label = if leaks { format!("host{}/{}request{}", host, path, random.below(1 << 40)) } else { format!("host{}/{}", host, path) };
            event.push(intern(&mut known, label));
        }
        recent.push(event);
        if recent.len() > 500 {
            recent.clear();
        }
        sleep(pause);
    }
}
