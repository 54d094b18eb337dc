//! The report's section "Signal and noise": the spectrum of the averaged update, which shows the
//! effect of smoothing.

use std::fmt::Write;

use super::input::ReportInput;
use super::page::{Figure, paragraph, section};
use super::plot::{Plot, Point, Scale, Series, Tone};
use smolfed_engine::denoise::DenoiserKind;
use smolfed_release::provenance::Provenance;

/// Returns the section. Without spectra it gives the reason.
pub(super) fn section_of(input: &ReportInput) -> String {
    let heading = "Signal and noise";
    let Some(spectrum) = &input.spectrum else {
        let reason = "There is no spectrum: it is computed for the last round, which this run has \
                      not reached.";
        return section(heading, &paragraph(reason));
    };
    let denoised = if input.config.server.smoothing_factor > 0.0 {
        Some("smoothed")
    } else {
        // "auto" filters the sum of the rounds, not the average of one.
        let of_average = !matches!(
            input.config.server.denoiser,
            DenoiserKind::None | DenoiserKind::Auto | DenoiserKind::AutoStep
        );
        of_average.then_some("denoised")
    };
    let mut series = vec![line("noisy", &spectrum.noisy, Tone::Orange, false)];
    if let Some(name) = denoised {
        series.push(line(name, &spectrum.denoised, Tone::Blue, false));
    }
    if let Some(clean) = &spectrum.clean {
        series.push(line("un-noised", clean, Tone::Green, true));
    }
    series.retain(|series| series.points.len() > 1);
    if series.is_empty() {
        let reason = "There is no spectrum: the model is too small to have one.";
        return section(heading, &paragraph(reason));
    }
    let mut caption = String::from(
        "Power of the last round's averaged update by frequency over the flattened weights: slow \
         changes from weight to weight at the left, alternation at the right. Noise is equally \
         strong at all frequencies",
    );
    caption.push_str(match denoised {
        Some("smoothed") => {
            "; where the signal is mostly slow, damping the fast ones removes more noise than \
             signal."
        }
        _ => ".",
    });
    if spectrum.clean.is_some() {
        caption.push_str(" Dashed: the same average without noise, in a simulation only.");
    }
    let axes = input.model.as_ref().map(|model| model.axes.as_slice());
    if let Some(&[_, width]) = axes {
        let _ = write!(
            caption,
            " An image that is read row by row repeats every {width} weights: hence peaks at \
             multiples of 1/{width}."
        );
    }
    caption.push_str(" After Liang et al. 2020, Figure 1.");
    let figure = Figure {
        title: "Spectrum of the averaged update",
        caption: &caption,
        origin: Provenance::of_samples(spectrum.clean.is_some()),
        caption_beside: true,
    };
    let plot = Plot {
        x_label: "frequency, cycles per weight".to_owned(),
        y_label: "power".to_owned(),
        y_scale: Scale::Log,
        series,
        ..Plot::default()
    };
    section(heading, &figure.with_plot(plot))
}

fn line(name: &str, power: &[f64], tone: Tone, dashed: bool) -> Series {
    let bands = power.len() as f64;
    let points = power.iter().enumerate().map(|(band, power)| {
        // Bands divide the frequencies from 0 to one half evenly.
        Point::new(0.5 * (band as f64 + 0.5) / bands, *power)
    });
    Series {
        label: name.to_owned(),
        end: String::new(),
        points: points.collect(),
        tone,
        dashed,
    }
}
