"""The debate as a game: problems, rules, observations, and the PettingZoo environment `fbs_debate_v0`."""
