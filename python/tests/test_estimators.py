"""The estimators: scikit-learn's checks, devices by metadata routing, and privacy claims."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

import smolfed
from smolfed import FederatedClassifier, FederatedRegressor, PrivacyWarning

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(2000, 4))
Y = (X[:, 0] > X[:, 1]).astype(int)
DEVICES = np.arange(2000) % 100


def classifier(**parameters) -> FederatedClassifier:
    settings = dict(epsilon=8, rounds=5, classes=[0, 1], bounds=(-1, 1), random_state=1)
    return FederatedClassifier(**{**settings, **parameters})


@pytest.mark.filterwarnings("ignore:`fit` got no `groups`")
@pytest.mark.parametrize("estimator", [FederatedClassifier(), FederatedRegressor()])
def test_estimators_pass_the_checks_of_scikit_learn(estimator) -> None:
    check_estimator(estimator, on_skip=None)


@pytest.mark.parametrize("estimator", [FederatedClassifier(), FederatedRegressor()])
def test_a_poor_score_is_the_only_exception(estimator) -> None:
    tags, plain = estimator.__sklearn_tags__(), clone(estimator).__sklearn_tags__()
    of_kind = tags.classifier_tags or tags.regressor_tags
    assert of_kind.poor_score
    assert not tags.no_validation and not tags.non_deterministic and tags.requires_fit
    assert not tags._skip_test
    assert plain == tags
    skipped = estimator_checks_generator(estimator)
    assert len(list(skipped)) > 30


def test_a_model_is_learned_and_its_privacy_stated() -> None:
    model = classifier(rounds=20).fit(X, Y, groups=DEVICES)
    assert model.score(X, Y) > 0.9
    assert model.epsilon_ == model.statement_.epsilon <= 8
    assert model.statement_.is_upper_bound
    assert (model.statement_.unit, model.statement_.devices) == ("device", 100)
    assert model.n_devices_ == 100 and model.n_iter_ == 20
    assert model.coef_.shape == (2, 4)
    shares = model.predict_proba(X[:10])
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("devices", [20, 200])
@pytest.mark.parametrize("epsilon", [8, 1])
def test_defaults_suit_few_and_many_devices(devices: int, epsilon: float) -> None:
    """Uses numbers in any unit and an outlier, with which a fixed step would diverge."""
    rng = np.random.default_rng(devices)
    rows = rng.normal([1e6, 0, -3], [2e5, 1e-3, 7], size=(4000, 3))
    target = 40 + 3 * (rows[:, 0] - 1e6) / 2e5 + rows[:, 2] / 7 + rng.normal(size=4000)
    rows[0, 1] = 1e3
    groups = np.arange(4000) % devices
    model = FederatedRegressor(epsilon=epsilon, random_state=1).fit(rows, target, groups=groups)
    best = 1 - 1 / target.var()
    assert best - 0.05 < model.score(rows, target) < best + 0.01


def test_what_is_read_from_rows_is_no_upper_bound() -> None:
    """The bound is proved only if classes and bounds are given beforehand."""
    assert classifier().fit(X, Y, groups=DEVICES).statement_.is_upper_bound
    for left_out, words in [("classes", "classes"), ("bounds", "scale of the features")]:
        model = classifier(**{left_out: None}).fit(X, Y, groups=DEVICES)
        assert not model.statement_.is_upper_bound
        assert any(words in note for note in model.statement_.notes)
    target = X[:, 0] * 2
    bounded = dict(epsilon=8, rounds=3, bounds=(-1, 1), random_state=1)
    known = FederatedRegressor(**bounded, target_bounds=(-2, 2)).fit(X, target, groups=DEVICES)
    assert known.statement_.is_upper_bound
    read = FederatedRegressor(**bounded).fit(X, target, groups=DEVICES)
    assert not read.statement_.is_upper_bound


def test_without_groups_each_row_is_a_device_and_the_statement_says_so() -> None:
    with pytest.warns(PrivacyWarning, match="each row is a device"):
        rows = classifier().fit(X, Y)
    assert rows.n_devices_ == rows.statement_.devices == 2000
    assert "Each row of the data is its own device" in rows.statement_.words
    devices = classifier().fit(X, Y, groups=DEVICES)
    assert devices.statement_.devices == 100
    assert "Each row" not in devices.statement_.words


def test_groups_that_a_search_keeps_are_warned_of() -> None:
    """Without metadata routing, groups reach only the splitter."""
    search = GridSearchCV(classifier(), {"learning_rate": [0.5]}, cv=GroupKFold(2))
    with pytest.warns(PrivacyWarning, match="metadata routing"):
        search.fit(X, Y, groups=DEVICES)
    assert search.best_estimator_.n_devices_ == 2000
    # Filters turn warnings into errors. This one confirms that each row is meant as a device.
    assert classifier().fit(X, Y, groups=range(len(Y))).n_devices_ == 2000
    with pytest.warns(PrivacyWarning, match="each row is a device"):
        FederatedRegressor(epsilon=8, rounds=2, bounds=(-1, 1)).fit(X, Y * 1.0)


def test_scores_are_those_of_the_predictions() -> None:
    model = classifier().fit(X, Y, groups=DEVICES)
    scores = model.decision_function(X)
    assert scores.shape == (2000,)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-scores)), atol=1e-6)
    three = Y + (X[:, 2] > 0.5)
    model = classifier(classes=[0, 1, 2]).fit(X, three, groups=DEVICES)
    scores = model.decision_function(X)
    assert scores.shape == (2000, 3)
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))


@pytest.mark.parametrize("bounds", [(-1, 1), ([0, -2, -1, -1], [4, 2, 1, 3]), None])
def test_coefficients_are_in_the_units_of_the_rows(bounds) -> None:
    shifted = X * [2, 1, 1, 2] + [2, 0, 0, 1]
    settings = dict(bounds=bounds, overrides={"data.norm_bound": 1e6})
    inside = shifted if bounds != (-1, 1) else X
    model = classifier(**settings).fit(inside, Y, groups=DEVICES)
    expected = (inside @ model.coef_.T + model.intercept_) @ [-1, 1]
    np.testing.assert_allclose(model.decision_function(inside), expected, atol=1e-4)
    target = 100 + 30 * inside[:, 0]
    regressor = FederatedRegressor(epsilon=8, rounds=5, random_state=1, **settings)
    regressor.fit(inside, target, groups=DEVICES)
    expected = (inside @ regressor.coef_.T + regressor.intercept_).reshape(-1)
    np.testing.assert_allclose(regressor.predict(inside), expected, rtol=1e-4)


def test_models_of_several_layers_have_no_coefficients() -> None:
    hidden = {"model.hidden": 5}
    network = {"model.layers": [{"type": "dense", "outputs": 5}, {"type": "relu"}]}
    for overrides in [hidden, network]:
        model = classifier(class_weight={1: 2.0}, learning_rate=0.1)
        assert model.set_params(overrides=overrides).fit(X, Y, groups=DEVICES) is model
        assert model.predict_proba(X).shape == (2000, 2)
        for name in ["coef_", "intercept_"]:
            assert not hasattr(model, name)
            with pytest.raises(AttributeError, match="not one layer of weights and biases"):
                getattr(model, name)
        # No state of an earlier fit remains, and none is missing after the next.
        model.set_params(overrides=None).fit(X, Y, groups=DEVICES)
        assert model.coef_.shape == (2, 4) and model.intercept_.shape == (2,)
    with pytest.raises(NotFittedError):
        _ = classifier().coef_


def test_class_weights_move_the_intercepts_alone() -> None:
    plain = classifier().fit(X, Y, groups=DEVICES)
    weighed = classifier(class_weight={1: 9.0}).fit(X, Y, groups=DEVICES)
    np.testing.assert_array_equal(weighed.coef_, plain.coef_)
    moved = weighed.decision_function(X) - plain.decision_function(X)
    np.testing.assert_allclose(moved, np.log(9), atol=1e-5)
    assert weighed.predict(X).mean() > plain.predict(X).mean() + 0.1
    assert str(weighed.statement_) == str(plain.statement_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(weighed)).predict(X), weighed.predict(X))


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ("balanced", "the counts of classes are private"),
        ([1, 2], "must be a dictionary"),
        ({2: 1.0}, "the classes are"),
        ({1: 0.0}, "above 0"),
        ({1: float("nan")}, "above 0"),
    ],
)
def test_other_class_weights_are_refused(weights, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        classifier(class_weight=weights).fit(X, Y, groups=DEVICES)


def test_a_search_is_not_covered_and_the_statement_says_so() -> None:
    model = classifier().fit(X, Y, groups=DEVICES)
    assert "GridSearchCV" in model.statement_.words
    assert "GridSearchCV" in type(model).epsilon_.__doc__


def test_groups_reach_a_pipeline_by_metadata_routing() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = classifier().set_fit_request(groups=True)
        pipeline = make_pipeline(FunctionTransformer(), model)
        pipeline.fit(X, Y, groups=DEVICES)
        assert pipeline[-1].n_devices_ == 100
        search = GridSearchCV(
            make_pipeline(FunctionTransformer(), model),
            {"federatedclassifier__learning_rate": [0.1, 0.5]},
            cv=GroupKFold(2),
        )
        search.fit(X, Y, groups=DEVICES)
        assert search.best_estimator_[-1].n_devices_ == 100


def test_groups_reach_a_pipeline_by_name() -> None:
    pipeline = make_pipeline(FunctionTransformer(), classifier())
    pipeline.fit(X, Y, federatedclassifier__groups=DEVICES)
    assert pipeline[-1].n_devices_ == 100


def test_epsilon_is_that_of_the_last_fit() -> None:
    model = classifier(epsilon=8).fit(X, Y, groups=DEVICES)
    before = model.epsilon_
    model.set_params(epsilon=1).fit(X, Y, groups=DEVICES)
    assert model.epsilon_ <= 1 < before
    other = classifier(epsilon=3).fit(X, Y, groups=DEVICES)
    assert model.epsilon_ <= 1 < other.epsilon_ <= 3


def test_a_seed_gives_the_same_model_and_none_another_one() -> None:
    fit = lambda **seed: classifier(**seed).fit(X, Y, groups=DEVICES).coef_  # noqa: E731
    np.testing.assert_array_equal(fit(random_state=3), fit(random_state=3))
    assert np.any(fit(random_state=3) != fit(random_state=4))
    assert np.any(fit(random_state=None) != fit(random_state=None))
    state = np.random.RandomState(5)
    assert np.any(fit(random_state=state) != fit(random_state=state))


def test_models_are_kept_by_pickle() -> None:
    model = classifier().fit(X, Y, groups=DEVICES)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.statement_.words == model.statement_.words


def test_classes_may_be_texts_and_unseen() -> None:
    names = np.array(["low", "high"])[Y]
    settings = dict(classes=["low", "middle", "high"], rounds=20, learning_rate=0.5)
    model = classifier(**settings).fit(X, names, groups=DEVICES)
    # In the order of `classes`, which differs from the sorted order.
    assert model.score(X, names) > 0.8
    assert set(model.predict(X)) <= {"low", "middle", "high"}
    assert model.predict_proba(X).shape == (2000, 3)
    assert model.statement_.is_upper_bound


def test_values_beyond_the_bounds_are_clipped() -> None:
    model = classifier(bounds=(np.full(4, -1.0), np.full(4, 1.0))).fit(X, Y, groups=DEVICES)
    np.testing.assert_array_equal(
        model.predict_proba(X[:1] * 1e6), model.predict_proba(np.sign(X[:1]))
    )


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        (dict(groups=DEVICES[:-1]), ValueError, "groups has 1999 entries for 2000 samples"),
        (dict(groups=np.stack([DEVICES, DEVICES], 1)), ValueError, "groups has 2 dimensions"),
        (dict(groups=np.where(DEVICES == 3, np.nan, DEVICES)), ValueError, "missing values"),
        (dict(groups=[None, *DEVICES[1:]]), ValueError, "missing values"),
    ],
)
def test_wrong_groups_are_refused(arguments, error, sentence) -> None:
    with pytest.raises(error, match=sentence):
        classifier().fit(X, Y, **arguments)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        (dict(epsilon=-1), "`privacy.epsilon`"),
        (dict(delta="1/M"), "delta is `1/M`"),
        (dict(rounds=0), "`rounds`"),
        (dict(sampling_rate=2), "`cohort.sampling_rate`"),
        (dict(clip_norm=0), "`privacy.clip_norm`"),
        (dict(learning_rate=-1), "`train.learning_rate`"),
        (dict(bounds=3), r"they must be \(low, high\)"),
        (dict(bounds=(1, -1)), "min below max"),
        (dict(bounds=([0, 0], 1)), "4 features"),
        (dict(classes=[0, 2]), "the label"),
        (dict(classes=[0, 0, 1]), "twice"),
        (dict(overrides={"server.nothing": 1}), "unknown key"),
        (dict(threads=0), "`threads` is 0"),
    ],
)
def test_wrong_parameters_are_refused_with_a_sentence(parameters, sentence) -> None:
    with pytest.raises(ValueError, match=sentence):
        classifier(**parameters).fit(X, Y, groups=DEVICES)


def test_an_unfitted_estimator_says_so() -> None:
    with pytest.raises(NotFittedError):
        classifier().predict(X)
    with pytest.raises(NotFittedError):
        _ = FederatedRegressor().epsilon_


def test_estimators_are_imported_when_they_are_used() -> None:
    assert "FederatedClassifier" in dir(smolfed)
    with pytest.raises(AttributeError, match="no attribute `Nothing`"):
        _ = smolfed.Nothing


def test_an_older_scikit_learn_is_named_with_the_remedy(monkeypatch) -> None:
    import importlib.metadata
    import sys

    # From scikit-learn 1.5, which has no `validate_data`.
    monkeypatch.delattr("sklearn.utils.validation.validate_data")
    monkeypatch.setattr(importlib.metadata.Distribution, "version", "1.5.2")
    monkeypatch.delitem(sys.modules, "smolfed.estimators")
    with pytest.raises(ImportError, match=r"scikit-learn 1\.6 or newer, but version 1\.5\.2.*pip"):
        importlib.import_module("smolfed.estimators")


def test_a_new_scikit_learn_that_cannot_be_imported_is_not_called_old(monkeypatch) -> None:
    import importlib
    import sys

    monkeypatch.delattr("sklearn.utils.validation.validate_data")
    monkeypatch.delitem(sys.modules, "smolfed.estimators")
    with pytest.raises(ImportError, match="cannot be imported: cannot import name 'validate_data'"):
        importlib.import_module("smolfed.estimators")


def test_questions_are_asked_and_epsilon_covers_them() -> None:
    questions = [{"kind": "evaluate", "every": 2}, {"kind": "presence"}]
    model = classifier(rounds=4, questions=questions).fit(X, Y, groups=DEVICES)
    asked = [(answer["round"], answer["kind"]) for answer in model.answers_]
    assert asked == [(1, "evaluate"), (3, "evaluate"), (3, "presence")]
    assert model.epsilon_ <= 8 and model.statement_.is_upper_bound
    assert "answer questions" in str(model.statement_)
    assert classifier().fit(X, Y, groups=DEVICES).answers_ == []
    with pytest.raises(ValueError, match="questions"):
        classifier(questions=[{"kind": "guess"}]).fit(X, Y, groups=DEVICES)
