"""The definition of steady state in SNIA's Performance Test Specification, independent of fiord's.

Reads a JSON list of tests from standard input, each with its series and the most rounds it may have. For each test it prints
after how many rounds all its series were steady in one window, or null, and of each series the mean, and in percent of it the
excursion, the slope, and the ends of the interval that has the drift with a confidence of 95 %, of that window or of the last one.
"""

import json
import math
import sys
from fractions import Fraction


def t_quantile(share):
    """The quantile of Student's t with 3 degrees of freedom, whose distribution has a closed form."""
    low, high = 0.0, 100.0
    for _ in range(100):
        t = (low + high) / 2
        below = 0.5 + (t / math.sqrt(3) / (1 + t * t / 3) + math.atan(t / math.sqrt(3))) / math.pi
        low, high = (t, high) if below < share else (low, t)
    return low


T = t_quantile(0.975)


def window(values):
    values = [Fraction(value) for value in values]
    mean = sum(values) / 5
    if mean <= 0:
        return None
    # The normal equations of the line a + b * x through x = 1..5.
    sum_x = sum(range(1, 6))
    sum_xx = sum(x * x for x in range(1, 6))
    sum_xy = sum(x * y for x, y in zip(range(1, 6), values))
    slope = (5 * sum_xy - sum_x * sum(values)) / (5 * sum_xx - sum_x * sum_x)
    first = slope * 1
    last = slope * 5
    base = (sum(values) - slope * sum_x) / 5
    squares = sum((y - base - slope * x) ** 2 for x, y in zip(range(1, 6), values))
    # The variance of the slope, by the inverse of the matrix of the normal equations.
    variance = squares / 3 * 5 / (5 * sum_xx - sum_x * sum_x)
    reach = T * math.sqrt(variance) * 4 / float(mean)
    drift = (last - first) / mean
    return mean, (max(values) - min(values)) / mean, drift, float(drift) - reach, float(drift) + reach


def is_steady(found):
    return found is not None and found[1] <= Fraction(20, 100) and abs(found[2]) <= Fraction(10, 100)


def judge(all_series, most):
    windows = []
    for count in range(5, min(len(all_series[0]), most) + 1):
        windows = [window(series[count - 5:count]) for series in all_series]
        if all(is_steady(found) for found in windows):
            return count, windows
    return None, windows


def figures(found):
    return None if found is None else [float(found[0])] + [float(100 * share) for share in found[1:]]


def main():
    answers = []
    for test in json.load(sys.stdin):
        rounds, windows = judge(test["series"], test["most"])
        answers.append({"rounds": rounds, "windows": [figures(found) for found in windows]})
    json.dump(answers, sys.stdout)


main()
