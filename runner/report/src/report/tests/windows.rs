use super::*;
use smolfed_engine::tables::CohortSampling;

/// Returns a run whose rounds are windows, with these updates by age and wasted participations.
fn windows(records: &[(&[u32], u32)]) -> ReportInput {
    windows_of(records, false)
}

/// Returns such a run with secret or public counts.
fn windows_of(records: &[(&[u32], u32)], are_secret: bool) -> ReportInput {
    let mut input = complete(records.len() as u32);
    input.config.cohort.sampling = CohortSampling::Buffered;
    for (record, (ages, wasted)) in input.records.iter_mut().zip(records) {
        (record.ages, record.wasted) = (ages.to_vec(), Some(*wasted));
        *record = record.clone().with_origins(are_secret);
    }
    input
}

#[test]
fn the_public_page_has_no_counts_that_may_depend_on_data() {
    let input = windows_of(&[(&[12, 0], 0), (&[10, 5], 1)], true);
    assert!(page(&input).contains("Windows of time"));
    let public = page(&input.for_public());
    assert!(!public.contains("Windows of time") && !public.contains("by age"));
}

/// Counts that do not depend on data are on both pages.
#[test]
fn both_pages_have_updates_by_age_and_wasted_participations() {
    let input = windows(&[(&[12, 0, 0], 0), (&[10, 5, 0], 1), (&[8, 4, 1], 3)]);
    for html in [page(&input), page(&input.for_public())] {
        for mark in [
            "Windows of time",
            "<tr><th scope=\"row\">0 windows</th><td class=\"number\">30</td>\
             <td class=\"number\">75.0 %</td></tr>",
            "<tr><th scope=\"row\">2 windows</th><td class=\"number\">1</td>\
             <td class=\"number\">2.5 %</td></tr>",
            "Wasted participations: 4 of 44, 9.1 %.",
            ">age 2<",
            "<td class=\"number\">8 / 4 / 1</td><td class=\"number\">3</td>",
        ] {
            assert!(html.contains(mark), "`{mark}` is missing");
        }
    }
}

#[test]
fn old_ages_share_a_curve() {
    let html = page(&windows(&[
        (&[9, 8, 7, 6, 5, 4, 3], 0),
        (&[9, 8, 7, 6, 5, 4, 3], 0),
    ]));
    assert!(html.contains("age 4 or more") && !html.contains("age 5"));
    assert!(html.contains(">6 windows</th>"));
}

#[test]
fn windows_without_updates_have_no_shares() {
    let html = page(&windows(&[(&[0, 0], 0)]));
    assert!(html.contains("Wasted participations: 0 of 0, –."));
    let row = ">1 window</th><td class=\"number\">0</td><td class=\"number\">–</td>";
    assert!(html.contains(row));
}

#[test]
fn other_runs_have_no_windows() {
    let html = page(&complete(3));
    assert!(!html.contains("Windows of time") && !html.contains("updates by age"));
}
