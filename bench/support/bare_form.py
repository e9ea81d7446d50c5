"""A bare Gradio form with the fields of Submit: ``python -m bench.support.bare_form PORT``."""

import sys


def main() -> None:
    import gradio as gr

    with gr.Blocks() as page:
        gr.Radio(["test", "dev"], value="test", label="Split")
        file, outcome = gr.File(label="Prediction file"), gr.HTML()
        fields: list[gr.Component] = [gr.Textbox(label=name) for name in ("Name", "Judge", "Model", "Link")]
        fields += [gr.Dropdown(["one", "another"], value=None, label=name) for name in ("Kind", "Inputs")]
        fields.append(gr.Radio(["no", "yes"], value=None, label="Test labels"))
        gr.Button("Submit").click(lambda *_: "done", [file, *fields], outcome)
        # As on our page: from then on, no event is lost.
        page.load(None, None, None, js="() => { document.documentElement.dataset.ready = 'yes'; }")
    page.launch(server_port=int(sys.argv[1]), quiet=True, share=False)


if __name__ == "__main__":
    main()
