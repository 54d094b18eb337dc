//! Suggestions for misspelt names ("did you mean"), and the minimum similarity of a suggested name.

/// The minimum Jaro-Winkler similarity of two names, from 0 to 1. It is the usual threshold.
const MIN_SIMILARITY: f64 = 0.8;

/// Returns the known name most similar to `name`, if one is similar enough.
pub fn similar<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let rated = known.into_iter().map(|known| {
        let similarity = strsim::jaro_winkler(&name, &known.to_ascii_lowercase());
        (similarity, known)
    });
    let alike = rated.filter(|(similarity, _)| *similarity > MIN_SIMILARITY);
    alike
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_were_meant_are_found() {
        let known = ["epsilon", "delta", "clip_norm", "cohort_size"];
        for (name, meant) in [
            ("epsilom", Some("epsilon")),
            ("Epsilon", Some("epsilon")),
            ("clipnorm", Some("clip_norm")),
            ("cohort", Some("cohort_size")),
            ("batch", None),
            ("", None),
        ] {
            assert_eq!(similar(name, known), meant, "{name}");
        }
    }
}
