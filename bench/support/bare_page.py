"""A bare Gradio page, with which the Space is compared: ``python -m bench.support.bare_page CSV PORT``."""

import sys


def main() -> None:
    import gradio as gr
    import pandas as pd

    path, port = sys.argv[1:]
    with gr.Blocks() as page:
        gr.Dataframe(pd.read_csv(path))
    page.launch(server_port=int(port), quiet=True, share=False)


if __name__ == "__main__":
    main()
