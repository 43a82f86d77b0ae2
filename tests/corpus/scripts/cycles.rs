// Trees whose children know their parent: weakly, or by Rc, which makes a circle that nothing frees.
use std::cell::RefCell;
use std::rc::{Rc, Weak};
use std::{env, thread, time::Duration};

enum Parent {
    None,
    Strong(Rc<Node>),
    Weak(Weak<Node>),
}

struct Node {
    text: String,
    parent: RefCell<Parent>,
    children: RefCell<Vec<Rc<Node>>>,
}

fn node(text: String) -> Rc<Node> {
    Rc::new(Node { text, parent: RefCell::new(Parent::None), children: RefCell::new(Vec::new()) })
}

fn main() {
    let arguments: Vec<String> = env::args().collect();
    let leaks = arguments[1] == "leaks";
    let mut state: u64 = arguments[2].parse().unwrap();
    let mut random = move || {
        state = state * 48271 % 2147483647;
        state
    };
    let pause = Duration::from_millis(70 + random() * 31 % 60);
    let mut total = 0;
    loop {
        let root = node(format!("document {}", random()));
        for i in 0..20 + random() % 60 {
            let child = node(format!("paragraph {} {}", i, "words ".repeat((random() % 60) as usize)));
            *child.parent.borrow_mut() = if leaks { Parent::Strong(root.clone()) } else { Parent::Weak(Rc::downgrade(&root)) };
            root.children.borrow_mut().push(child);
        }
        for child in root.children.borrow().iter() {
            total += match &*child.parent.borrow() {
                Parent::Strong(parent) => parent.text.len(),
                Parent::Weak(parent) => parent.upgrade().map_or(0, |parent| parent.text.len()),
                Parent::None => child.text.len(),
            };
        }
        thread::sleep(pause + Duration::from_millis(total as u64 % 2));
    }
}
