//! The message about training that diverged: the share of participations, the feature with an
//! outlier, and advice about the learning rate.

use smolfed_data::Federation;
use smolfed_data::federation::outlier::Outlier;
use smolfed_engine::experiment::Experiment;
use smolfed_engine::round::RoundRecord;
use smolfed_engine::tables::train::LearningRateSetting;

/// A number as many deviations from the mean of its feature is worth a word.
const FAR: f32 = 10.0;

/// What to say of the rounds of a simulation, if local training diverged in them: in how many
/// participations, which feature has a number far from its mean, and what helps. All of it is read
/// from private rows without noise.
#[must_use]
pub fn of_simulation(
    experiment: &Experiment,
    federation: &Federation,
    records: &[RoundRecord],
) -> Option<String> {
    let step = experiment.config().train.learning_rate;
    sentence(records, step, || federation.outlier())
}

/// [`of_simulation`] of rounds with this step. `find` looks for the number that is farthest from
/// the others.
fn sentence(
    records: &[RoundRecord],
    step: LearningRateSetting,
    find: impl FnOnce() -> Option<Outlier>,
) -> Option<String> {
    let of_devices = || records.iter().map(|record| &record.simulation_only);
    let trained: usize = of_devices().map(|only| only.trained).sum();
    let reasons = of_devices().flat_map(|only| &only.left_out);
    let diverged = reasons.filter(|(reason, _)| reason.contains("diverged"));
    let diverged: usize = diverged.map(|(_, count)| count).sum();
    if diverged == 0 {
        return None;
    }
    let far = find().filter(|outlier| outlier.deviations >= FAR);
    let far = far.map_or(String::new(), |outlier| {
        format!(
            ", and `{}` has a number {:.0} standard deviations from its mean",
            outlier.feature, outlier.deviations
        )
    });
    let remedy = match step {
        LearningRateSetting::Auto => "set a lower `data.norm_bound`".to_owned(),
        LearningRateSetting::Fixed(step) => {
            format!("lower `train.learning_rate` ({step}), or set `data.norm_bound` and \"auto\"")
        }
    };
    Some(format!(
        "local training diverged in {diverged} of {} participations{far} (simulation only): \
         {remedy}",
        diverged + trained
    ))
}

#[cfg(test)]
mod tests {
    use smolfed_core::params::LearningRate;
    use smolfed_engine::tables::train::LearningRateSetting::{Auto, Fixed};

    use super::*;

    fn record(trained: usize, diverged: usize) -> RoundRecord {
        let mut record = RoundRecord::new(0, LearningRate::new(0.1).unwrap());
        record.simulation_only.trained = trained;
        if diverged > 0 {
            let reason = "local training diverged: the learning rate is too high for the data";
            record
                .simulation_only
                .left_out
                .insert(reason.to_owned(), diverged);
        }
        record
    }

    #[test]
    fn devices_feature_and_remedy_are_named() {
        let outlier = Outlier {
            feature: "population".to_owned(),
            deviations: 31.2,
        };
        let rounds = [record(40, 0), record(20, 20)];
        assert_eq!(
            sentence(&rounds, Fixed(0.05), || Some(outlier)).unwrap(),
            "local training diverged in 20 of 80 participations, and `population` has a number 31 \
             standard deviations from its mean (simulation only): lower `train.learning_rate` \
             (0.05), or set `data.norm_bound` and \"auto\""
        );
        assert_eq!(
            sentence(&rounds[1..], Auto, || None).unwrap(),
            "local training diverged in 20 of 40 participations (simulation only): set a lower \
             `data.norm_bound`"
        );
    }

    #[test]
    fn nothing_is_said_of_a_training_that_learns() {
        let rounds = [record(40, 0), record(40, 0)];
        let far = Outlier {
            feature: "x".to_owned(),
            deviations: 30.0,
        };
        assert_eq!(sentence(&rounds, Fixed(0.1), || Some(far)), None);
        assert_eq!(sentence(&[], Fixed(0.1), || None), None);
    }
}
