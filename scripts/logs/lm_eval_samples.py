# mypy: ignore-errors
"""Make the samples of lm-evaluation-harness in tests/logs/logs/lm-eval. Made with lm_eval 0.4.13, without network.

A server on loopback with OpenAI's interface stands for the models; it ends with this script.

    python scripts/logs/lm_eval_samples.py tests/logs/logs/lm-eval
"""

import json
import re
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from lm_eval import simple_evaluate
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager

WRONG = {"fake-small": {1, 2, 3, 5, 8}, "fake-large": {3}}
TASK = {
    "task": "sums",
    "dataset_path": "json",
    "test_split": "test",
    "output_type": "generate_until",
    "doc_to_text": "What is {{n}} + {{n}}?",
    "doc_to_target": "{{2 * n}}",
    "generation_kwargs": {"until": ["\n"], "max_gen_toks": 32},
    "filter_list": [
        {
            "name": "strict-match",
            "filter": [
                {"function": "regex", "regex_pattern": r"answer is (-?[0-9]+)\.$"},
                {"function": "take_first"},
            ],
        },
        {
            "name": "flexible-extract",
            "filter": [
                {"function": "regex", "regex_pattern": "([0-9]+)", "group_select": -1},
                {"function": "take_first"},
            ],
        },
    ],
    "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
}


class Answers(BaseHTTPRequestHandler):
    """Add two numbers. Some models are wrong; an even answer comes without the words that `strict-match` wants."""

    def log_message(self, *_: object) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number = int(re.findall(r"What is (\d+)", json.dumps(asked["messages"]))[-1])
        said = str(2 * number + (number in WRONG[asked["model"]]))
        text = said if number == 4 else f"The answer is {said}."
        message = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        body = json.dumps({"id": "x", "object": "chat.completion", "choices": [message]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main(target: Path) -> None:
    """Evaluate both models, and keep the files that lm-evaluation-harness writes."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        docs = Path(folder) / "docs.jsonl"
        docs.write_text("".join(json.dumps({"n": n}) + "\n" for n in range(1, 13)))
        for model in WRONG:
            tracker = EvaluationTracker(output_path=str(target))
            arguments = f"model={model},base_url=http://127.0.0.1:{server.server_port}/v1/chat/completions"
            found = simple_evaluate(
                model="local-chat-completions",
                model_args=arguments,
                tasks=[{**TASK, "dataset_kwargs": {"data_files": {"test": str(docs)}}}],
                task_manager=TaskManager(include_defaults=False),
                apply_chat_template=True,
                evaluation_tracker=tracker,
            )
            samples = found.pop("samples")
            tracker.save_results_aggregated(results=found, samples=samples)
            for task, each in samples.items():
                tracker.save_results_samples(task_name=task, samples=each)
            print(model, found["results"])
    server.shutdown()
    for file in target.rglob("results_*.json"):  # what it says of this machine is of no use
        results = json.loads(file.read_text())
        text = json.dumps({name: each for name, each in results.items() if "env" not in name and name != "git_hash"})
        text = re.sub(r'"[^"]*docs\.jsonl"', '"docs.jsonl"', re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:8000", text))
        file.write_text(text + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
