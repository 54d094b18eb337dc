use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::report::markup::assert_well_formed;

fn line(points: Vec<Point>) -> Plot {
    Plot {
        series: vec![Series {
            label: "curve".to_owned(),
            end: "1".to_owned(),
            points,
            ..Series::default()
        }],
        ..Plot::default()
    }
}

#[test]
fn an_empty_plot_is_a_frame() {
    let svg = Plot::default().to_svg();
    assert_well_formed(&svg);
    assert!(!svg.contains("class=\"line"));
}

#[test]
fn a_gap_interrupts_the_line() {
    let points = [1.0, 2.0, f64::NAN, 3.0, 4.0];
    let points = points.iter().enumerate();
    let svg = line(points.map(|(x, y)| Point::new(x as f64, *y)).collect()).to_svg();
    let path = svg.split("class=\"line blue\" d=\"").nth(1).unwrap();
    let path = path.split('"').next().unwrap();
    assert_eq!(
        (path.matches('M').count(), path.matches('L').count()),
        (2, 2)
    );
}

#[test]
fn a_single_point_is_a_labelled_dot() {
    let svg = line(vec![Point::new(1.0, 0.5)]).to_svg();
    assert!(svg.contains("<circle") && svg.contains(">curve<") && svg.contains(">1<"));
}

#[test]
fn error_bars_are_drawn_where_there_is_an_error() {
    let svg = line(vec![Point::with_error(1.0, 2.0, 0.1), Point::new(2.0, 2.0)]).to_svg();
    assert_eq!(svg.matches("class=\"error").count(), 1);
}

#[test]
fn names_are_escaped() {
    let plot = Plot {
        title: "<script>".to_owned(),
        x_label: "a & b".to_owned(),
        ..line(vec![])
    };
    let svg = plot.to_svg();
    assert!(svg.contains("&lt;script&gt;") && svg.contains("a &amp; b"));
    assert_well_formed(&svg);
}

#[test]
fn a_file_carries_its_style() {
    let file = line(vec![Point::new(1.0, 1.0)]).to_svg_file();
    assert!(file.contains("--blue") && file.trim_end().ends_with("</style></svg>"));
    assert_well_formed(&file);
}

#[test]
fn long_curves_make_short_files() {
    let points = (0..100_000).map(|i| Point::new(f64::from(i), f64::from(i % 100)));
    let mut plot = line(points.clone().collect());
    let spans = points.map(|p| Span {
        x: p.x,
        low: p.y,
        high: p.y + 1.0,
    });
    plot.bands = vec![Band {
        spans: spans.collect(),
        ..Band::default()
    }];
    assert!(plot.to_svg().len() < 40_000);
}

proptest! {
    /// For all values the drawing is well-formed, finite and deterministic.
    #[test]
    fn any_values_make_a_drawing(
        values in vec((any::<f64>(), any::<f64>(), any::<f64>()), 0..20),
        rule in any::<f64>(),
        scale in prop::sample::select(vec![Scale::Linear, Scale::Whole, Scale::Log]),
    ) {
        let mut plot = line(values.iter().map(|v| Point::with_error(v.0, v.1, v.2)).collect());
        plot.bands = vec![Band {
            spans: values.iter().map(|v| Span { x: v.0, low: v.1, high: v.2 }).collect(),
            ..Band::default()
        }];
        plot.rules = vec![Rule { label: "limit".to_owned(), end: String::new(), y: rule }];
        (plot.x_scale, plot.y_scale) = (scale, scale);
        let svg = plot.to_svg();
        prop_assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_well_formed(&svg);
        prop_assert_eq!(svg, plot.to_svg());
    }
}
