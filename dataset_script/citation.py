"""How the paper is cited: for the dataset's card and for the Space."""

from typing import Final

PAPER_BIBTEX: Final = """@article{lu2025agentrewardbench,
  title         = {AgentRewardBench: Evaluating Automatic Evaluations of Web Agent Trajectories},
  author        = {L{\\`u}, Xing Han and Kazemnejad, Amirhossein and Meade, Nicholas and Patel, Arkil and
                   Shin, Dongchan and Zambrano, Alejandra and Sta{\\'n}czak, Karolina and Shaw, Peter and
                   Pal, Christopher J. and Reddy, Siva},
  year          = {2025},
  eprint        = {2504.08942},
  archivePrefix = {arXiv},
  url           = {https://arxiv.org/abs/2504.08942}
}"""
