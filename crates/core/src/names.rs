//! Advice for an unknown name: the nearest known ones.

/// Returns `did you mean lru?` with the nearest of `known`, or `there are a, b, c` if none is within an edit
/// distance (swaps of neighbours included) of a third of the name.
pub fn advice<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let mut near: Vec<(usize, &str)> = known
        .iter()
        .map(|&other| (strsim::osa_distance(name, other), other))
        .filter(|&(distance, other)| distance <= other.len() / 3)
        .collect();
    near.sort_by_key(|&(distance, _)| distance);
    near.truncate(3);
    if near.is_empty() {
        return format!("there are {}", known.join(", "));
    }
    format!("did you mean {}?", near.iter().map(|&(_, other)| other).collect::<Vec<_>>().join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first_and_far_ones_not_at_all() {
        let known = ["all-slow", "all-fast", "lru"];
        assert_eq!(advice("all-fats", known), "did you mean all-fast?");
        assert_eq!(advice("all-slst", known), "did you mean all-slow or all-fast?");
        assert_eq!(advice("clairvoyance", known), "there are all-slow, all-fast, lru");
        assert_eq!(advice("", known), "there are all-slow, all-fast, lru");
    }
}
