"""AgentRewardBench from Python: the board, and what verdicts and labels of agents give, as DataFrames."""
