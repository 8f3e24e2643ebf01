"""States of a cluster with teams, and what water filling gives to each user: `fair_share_oracle.py COUNT`.

A line is a state: cores, teams; of each team weight, guarantee, cap (0: none) and users; of each user what it wants and
what it is to have. Amounts are thousandths of a core. Shared with the scheduler: nothing but the sentence "caps, then
guarantees not met, then least weighted usage"."""
import random
import sys


def fill(most, of, amount):
    """The level at which sum(of(level)) reaches the amount, or all have what they want."""
    low, high = 0.0, 1.0
    while sum(of(high)) < min(amount, sum(most)) - 1e-6 and high < 1e12:
        high *= 2
    for _ in range(80):
        level = (low + high) / 2
        low, high = (level, high) if sum(of(level)) < amount else (low, level)
    return of(high)


def shares(cores, teams):
    """By team, the share of each of its users."""
    wants = [min(sum(team["users"]), team["cap"] or 1e12) for team in teams]
    promised = sum(team["guaranteed"] for team in teams)
    scale = min(1.0, cores / promised) if promised else 1.0
    least = [min(want, team["guaranteed"] * scale) for want, team in zip(wants, teams)]

    def of(level):
        return [min(want, max(base, level * team["weight"])) for want, base, team in zip(wants, least, teams)]

    given = fill(wants, of, cores)
    return [fill(team["users"], lambda level, team=team: [min(want, level) for want in team["users"]], share)
            for team, share in zip(teams, given)]


def draw(dice):
    cores = dice.randint(1, 8) * 1000
    teams = []
    for _ in range(dice.randint(1, 5)):
        cap = dice.choice([0, 0, 0, dice.randint(1, 4) * 1000])
        guaranteed = dice.choice([0, 0, dice.randint(1, 16) * 250])
        teams.append({"weight": dice.choice([250, 500, 1000, 1000, 2000, 3000]),
                      # Room above it, in which a turn that was missed is made up for.
                      "guaranteed": min(guaranteed, cap // 2) if cap else guaranteed, "cap": cap,
                      "users": [dice.choice([16000, 16000, dice.randint(1, 30) * 100, 0])
                                for _ in range(dice.randint(1, 4))]})
    return cores, teams


def main():
    dice = random.Random(28)
    for _ in range(int(sys.argv[1])):
        cores, teams = draw(dice)
        words = [cores, len(teams)]
        for team, given in zip(teams, shares(cores, teams)):
            words += [team["weight"], team["guaranteed"], team["cap"], len(given)]
            for want, share in zip(team["users"], given):
                words += [want, round(share)]
        print(*words)


if __name__ == "__main__":
    main()
