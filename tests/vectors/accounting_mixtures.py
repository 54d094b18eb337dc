"""Writes accounting_mixtures.json: figures of sampled Gaussians in high precision.

Independent of this repository's code: uses mpmath for all tables except `several_rounds`, which
convolves losses on a fine lattice with numpy. Needs mpmath 1.3, numpy and scipy, and takes about
ten minutes. With names of tables as arguments, computes and prints only these.
"""

import json
import pathlib
import sys

import numpy as np
from mpmath import binomial, erfc, exp, expm1, log, log1p, mp, mpf, pi, quad, sqrt
from scipy.stats import norm

FILE = pathlib.Path(__file__).with_suffix(".json")


def cdf(x):
    return erfc(-x / sqrt(mpf(2))) / 2


def bisect(excess, high=None, steps=70):
    """The root of a decreasing function on [0, ..). `high` is an upper end known to suffice."""
    low = mpf(0)
    if excess(low) <= 0:
        return low
    if high is None:
        high = mpf(1) / 2**60
        while excess(high) > 0:
            low, high = high, 4 * high
    for _ in range(steps):
        middle = (low + high) / 2
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
    return high


class Mixture:
    """P = sum of w_c N(c, z^2) against Q = N(0, z^2), and its losses."""

    def __init__(self, weights, z):
        self.weights = [(mpf(c), mpf(w)) for c, w in weights if w > 0]
        self.z = mpf(z)
        self.none = sum(w for c, w in self.weights if c == 0)
        self.some = [(c, w) for c, w in self.weights if c > 0]

    def loss(self, x):
        return log(sum(w * exp((c * x - c * c / 2) / self.z**2) for c, w in self.weights))

    def density(self, x):
        terms = (w * exp(-(((x - c) / self.z) ** 2) / 2) for c, w in self.weights)
        return sum(terms) / (self.z * sqrt(2 * pi))

    def where(self, loss):
        """x with this loss, or None if all are larger. Uses Newton's method from the right."""
        rest = exp(loss) - self.none
        if rest <= 0:
            return None
        target = log(rest)
        x = min((target - log(w)) * self.z**2 / c + c / 2 for c, w in self.some)
        for _ in range(200):
            terms = [(c, w * exp((c * x - c * c / 2) / self.z**2)) for c, w in self.some]
            total = sum(term for _, term in terms)
            slope = sum(c * term for c, term in terms) / total / self.z**2
            step = (log(total) - target) / slope
            x -= step
            if abs(step) < mpf(10) ** (6 - mp.dps) * (1 + abs(x)):
                break
        return x

    def removed(self, epsilon):
        """delta of P against Q."""
        a = self.where(epsilon)
        if a is None:
            return -expm1(epsilon)
        above = sum(w * cdf((c - a) / self.z) for c, w in self.weights)
        return above - exp(epsilon) * cdf(-a / self.z)

    def added(self, epsilon):
        """delta of Q against P."""
        a = self.where(-epsilon)
        if a is None:
            return mpf(0)
        below = sum(w * cdf((a - c) / self.z) for c, w in self.weights)
        return cdf(a / self.z) - exp(epsilon) * below

    def integral(self, of, kinks):
        low = -14 * self.z
        high = max(c for c, _ in self.weights) + 14 * self.z
        count = int((high - low) / self.z) + 1
        points = [low + (high - low) * i / count for i in range(count + 1)]
        at = [self.where(kink) for kink in kinks]
        points += [x for x in at if x is not None and low < x < high]
        return quad(of, sorted(points), maxdegree=6)

    def removed_twice(self, epsilon):
        def of(x):
            return self.density(x) * self.removed(epsilon - self.loss(x))

        return self.integral(of, (epsilon, epsilon - log(self.none)))

    def added_twice(self, epsilon):
        def of(x):
            density = exp(-((x / self.z) ** 2) / 2) / (self.z * sqrt(2 * pi))
            return density * self.added(epsilon + self.loss(x))

        return self.integral(of, (-epsilon, -epsilon - log(self.none)))


def binomial_weights(k, rate):
    rate = mpf(rate)
    return [(c, binomial(k, c) * rate**c * (1 - rate) ** (k - c)) for c in range(k + 1)]


def hypergeometric_weights(n, k, s):
    first = max(0, s - (n - k))
    numbers = range(first, min(k, s) + 1)
    return [(c, binomial(k, c) * binomial(n - k, s - c) / binomial(n, s)) for c in numbers]


def gaussian_delta(epsilon, mu):
    return cdf(-epsilon / mu + mu / 2) - exp(epsilon) * cdf(-epsilon / mu - mu / 2)


def gaussian_epsilon(mu, delta):
    return bisect(lambda e: gaussian_delta(e, mu) - delta, steps=200)


def large_noise():
    mp.dps = 60
    for z in (1.0, 1e2, 1e5, 1e8, 1e11, 1e14):
        for share in ("0.999999", "0.9", "0.5", "1e-2", "1e-6", "1e-12"):
            mu = 1 / mpf(z)
            delta = float(gaussian_delta(mpf(0), mu) * mpf(share))
            yield {"z": z, "delta": delta, "eps": mp.nstr(gaussian_epsilon(mu, mpf(delta)), 20)}


def large_noise_sampled():
    mp.dps = 60
    rows = []
    for q in (1e-6, 0.05, 0.7):
        for z in (1.0, 1e5, 1e10, 1e14):
            for share in ("0.999", "0.5", "1e-6"):
                most = gaussian_delta(mpf(0), 1 / mpf(z)) * mpf(q)
                rows.append((q, z, float(most * mpf(share))))
    rows += [(1e-30, 0.05, 1e-33), (1e-20, 0.1, 1e-25), (1e-14, 0.2, 1e-15), (1e-13, 0.1, 9e-14)]
    for q, z, delta in rows:
        base = gaussian_epsilon(1 / mpf(z), mpf(delta) / mpf(q))
        yield {"q": q, "z": z, "delta": delta, "eps": mp.nstr(log1p(mpf(q) * expm1(base)), 20)}


def large_noise_rdp():
    mp.dps = 60
    for q, z, order in ((0.05, 1e5, 2), (0.05, 1e10, 8), (0.3, 1e14, 32), (1e-6, 1e14, 256)):
        rate, total = mpf(q), mpf(0)
        for k in range(2, order + 1):
            weight = binomial(order, k) * (1 - rate) ** (order - k) * rate**k
            total += weight * expm1(mpf(k) * (k - 1) / (2 * mpf(z) ** 2))
        yield {"q": q, "z": z, "alpha": order, "rdp": mp.nstr(log1p(total) / (order - 1), 20)}


def two_rounds():
    mp.dps = 25
    for q, z, delta in (
        (3.9e-5, 1.06, 6e-14), (3.9e-5, 1.06, 1e-18), (1e-9, 0.5, 1e-11), (1e-9, 1.0, 1e-15),
        (1e-7, 0.7, 1e-9), (1e-6, 2.0, 1e-12), (1e-5, 0.3, 1e-18), (1e-4, 1.5, 1e-15),
        (1e-3, 1.0, 1e-18), (0.01, 0.5, 1e-12), (0.1, 1.0, 1e-18), (0.5, 0.7, 1e-15),
        (0.5, 2.0, 1e-18), (1e-8, 4.0, 1e-12), (0.01, 10.0, 1e-9), (1e-3, 0.3, 1e-6),
    ):
        mixture = Mixture(binomial_weights(1, q), z)
        epsilon = bisect(lambda e, m=mixture, d=delta: m.removed_twice(e) - d)
        yield {"q": q, "z": z, "T": 2, "delta": delta, "eps": mp.nstr(epsilon, 16)}


def rounded_epsilon(q, z, rounds, delta, highest, is_low, cells=30_000):
    """Losses of one round moved down (up) to a lattice, convolved directly."""
    width = highest / cells
    at = z * np.log1p(np.expm1(np.arange(cells + 1) * width) / q) + 0.5 / z
    tail = (1 - q) * norm.sf(at) + q * norm.sf(at - 1 / z)
    # Losses below 0 are at least ln(1 - q), and at most 0.
    below = int(np.ceil(-np.log1p(-q) / width)) if is_low else 0
    gap = np.zeros(max(below - 1, 0))
    round_masses = np.concatenate([[1 - tail[0]], gap, tail[:-1] - tail[1:]])
    beyond = 0.0 if is_low else tail[-1]
    masses, infinite = round_masses, beyond
    kept = cells + 1 + 40 * rounds
    for _ in range(rounds - 1):
        masses = np.convolve(masses, round_masses)
        infinite += beyond + (0.0 if is_low else masses[kept:].sum())
        masses = masses[:kept]
    losses = np.arange(len(masses)) * width - below * width * rounds
    low, high = 0.0, highest
    for _ in range(100):
        middle = (low + high) / 2
        found = (masses * np.clip(-np.expm1(middle - losses), 0, None)).sum() + infinite
        low, high = (middle, high) if found > delta else (low, middle)
    return low if is_low else high


def several_rounds():
    for q, z, rounds, delta, highest in (
        (3.9e-5, 1.06, 5, 6e-14, 0.6), (1e-5, 1.5, 5, 1e-15, 0.15), (1e-4, 0.7, 5, 1e-9, 3.0),
    ):
        low, high = (rounded_epsilon(q, z, rounds, delta, highest, low) for low in (True, False))
        row = {"q": q, "z": z, "T": rounds, "delta": delta}
        yield row | {"eps_low": float(low), "eps_high": float(high)}


def users_poisson():
    mp.dps = 18
    for k, tau, z, delta, rounds in (
        (1, 0.05, 1.0, 1e-5, 1), (2, 0.05, 1.0, 1e-5, 1), (3, 0.05, 1.0, 1e-5, 1),
        (8, 0.05, 1.0, 1e-5, 1), (50, 0.05, 3.0, 1e-6, 1), (2, 1e-4, 0.7, 1e-9, 1),
        (3, 0.3, 2.0, 1e-12, 1), (10, 0.9, 8.0, 1e-5, 1), (5, 1e-6, 1.0, 1e-12, 1),
        (2, 0.5, 0.5, 1e-6, 1), (100, 0.01, 4.0, 1e-8, 1), (4, 0.02, 20.0, 1e-4, 1),
        (2, 0.05, 1.0, 1e-5, 2), (3, 0.5, 3.0, 1e-6, 2), (2, 1e-4, 0.8, 1e-12, 2),
    ):
        mixture = Mixture(binomial_weights(k, tau), z)
        removed = mixture.removed if rounds == 1 else mixture.removed_twice
        added = mixture.added if rounds == 1 else mixture.added_twice
        # The loss of adding has a maximum.
        most = -rounds * log(mixture.none)
        remove = bisect(lambda e, f=removed, d=delta: f(e) - d)
        add = bisect(lambda e, f=added, d=delta: f(e) - d, most, 52 if rounds == 1 else 26)
        row = {"k": k, "tau": tau, "z": z, "delta": delta, "T": rounds}
        yield row | {"eps_remove": mp.nstr(remove, 16), "eps_add": mp.nstr(add, 16)}


def profile(weights, nu, epsilon):
    """min over v_c >= 0, sum v_c = t - 1, of sum h_c delta_c(ln(t + v_c h_0 / h_c)), t = e^eps."""
    none = sum(w for c, w in weights if c == 0)
    some = [(c / nu, w) for c, w in weights if c > 0 and w > 0]
    target = -none * expm1(-epsilon)

    def missing(a):
        rise = (w * expm1(max(mpf(0), m * a - m * m / 2 - epsilon)) for m, w in some)
        return target - sum(rise)

    least = bisect(missing)
    total = mpf(0)
    for mu, weight in some:
        a = max(least, epsilon / mu + mu / 2)
        total += weight * (cdf(mu - a) - exp(mu * a - mu * mu / 2) * cdf(-a))
    return total


def users_uniform():
    mp.dps = 20
    for n, k, s, nu, delta in (
        (1000, 1, 50, 1.0, 1e-5), (1000, 2, 50, 1.0, 1e-5), (1000, 3, 50, 1.0, 1e-5),
        (1000, 10, 50, 3.0, 1e-6), (20, 3, 5, 2.0, 1e-4), (10, 4, 8, 3.0, 1e-3),
        (100000, 2, 100, 0.8, 1e-9), (200, 5, 199, 10.0, 1e-4), (20, 3, 5, 2.0, 0.3),
    ):
        weights = hypergeometric_weights(n, k, s)
        mixture = Mixture(weights, nu)
        attained = bisect(lambda e, m=mixture, d=delta: m.removed(e) - d)
        upper = bisect(lambda e, w=weights, v=nu, d=delta: profile(w, mpf(v), e) - d)
        row = {"N": n, "k": k, "S": s, "nu": nu, "delta": delta}
        yield row | {"eps_attained": mp.nstr(attained, 14), "eps_profile": mp.nstr(upper, 14)}


TABLES = {
    table.__name__: (table, text)
    for table, text in (
        (large_noise, "one Gaussian release, z = noise std / sensitivity: epsilon, 60 digits"),
        (large_noise_sampled, "one Poisson-sampled Gaussian, rate q: epsilon, 60 digits"),
        (large_noise_rdp, "Renyi divergence of one Poisson-sampled round, 60 digits"),
        (two_rounds, "two Poisson-sampled rounds, a device removed: the integral over one round "
         "of the other's profile, 25 digits"),
        (several_rounds, "T such rounds: losses moved down and up to a lattice, convolved"),
        (users_poisson, "Poisson sampling, a user with k devices removed or added: mixtures with "
         "Binomial(k, tau) weights, 18 digits"),
        (users_uniform, "one cohort of S out of N, a user's k devices replaced, nu = noise std / "
         "2L: eps_attained by one pair of federations (hypergeometric mixture), eps_profile of "
         "the bound of uniform_profile.rs, 20 digits"),
    )
}

if __name__ == "__main__":
    chosen = sys.argv[1:] or list(TABLES)
    found = {name: list(TABLES[name][0]()) for name in chosen}
    if sys.argv[1:]:
        print(json.dumps(found, indent=0))
    else:
        notes = {name: text for name, (_, text) in TABLES.items()}
        notes["generator"] = f"tests/vectors/{pathlib.Path(__file__).name}"
        FILE.write_text(json.dumps({"conventions": notes} | found, indent=0) + "\n")
