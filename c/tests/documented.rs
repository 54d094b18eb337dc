//! Every function of the header says when it may be called and how long it takes.

#[test]
fn every_function_names_its_preconditions_interrupts_and_time() {
    let header = include_str!("../include/smolfed.h");
    let mut comment = String::new();
    let mut count = 0;
    for line in header.lines() {
        if line.starts_with("//") {
            comment += line;
            continue;
        }
        let name = line.split_once('(').map_or("", |(head, _)| head);
        let is_function = name.contains("sf_") && !name.starts_with([' ', '#', '}']);
        // The firmware's own.
        let is_function = is_function && !name.contains("sf_panic");
        if is_function && !line.starts_with("typedef") {
            count += 1;
            assert!(comment.contains("Interrupts: "), "{name}: {comment}");
            assert!(comment.contains("Longest time: "), "{name}: {comment}");
            let takes_pointers = line.contains('*') && !name.contains("strerror");
            let says = comment.contains("Preconditions: ") || !takes_pointers;
            assert!(says || name.contains("version"), "{name}: {comment}");
        }
        if !line.trim().is_empty() {
            comment.clear();
        }
    }
    assert!(count > 30, "{count}");
}
