#!/usr/bin/env python3
"""Write golden.json: what sentence-transformers, the reference, makes of a few texts.

    golden.py MODEL > golden.json

MODEL is the folder that sentence-transformers loads (config.json, model.safetensors, modules.json, ...), as the package
that fetch-model.sh names holds it. Needed from PyPI: sentence-transformers.
"""

import json
import sys

import sentence_transformers
import torch

TEXTS = [
    "The deployment of the billing service is frozen until Monday.",
    "Who decided that we use PostgreSQL for the ledger?",
    "What did Caroline say about her sister's wedding in June 2023?",
    "i went to the park with my dog yesterday, it was AMAZING!!!",
    "She doesn't like Émile's café in Zürich; naïve façades, coöperation, Łódź.",
    "تصمیم گرفتیم که پایگاه داده را هر شب پشتیبان بگیریم.",
    "چه کسی مسئول استقرار سرویس پرداخت است؟ نسخهٔ ۲٫۳ می‌آید.",
    "قررنا أن نجتمع كل يوم أحد في الساعة العاشرة صباحًا.",
    "我们决定每天晚上备份数据库。",
    "谁负责部署支付服务？",
    "データベースは毎晩バックアップすることにしました。カタカナ、ｶﾀｶﾅ",
    "데이터베이스를 매일 밤 백업하기로 했습니다.",
    "Мы решили делать резервную копию базы данных каждую ночь. Ёлка, й.",
    "İstanbul'daki sunucu IŞIK adını taşıyor; ğüşöç.",
    "🚀 shipped v2.3.1 😀👩‍💻🏽 🇮🇷❤️",
    "🎉",
    "",
    "   \t\n ",
    ".",
    "a",
    "ERR_CONN_RESET at /usr/local/lib/node_modules/npm/bin/npm-cli.js:42 (exit code 137)",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 --no-verify GetUserByID HTTP_404 foo_bar.baz",
    "https://example.com/a/b?c=d&e=%20f#g user@example.org 192.168.0.1:8080 550e8400-e29b-41d4-a716-446655440000",
    "zero\u200bwidth\u00a0space\ufeff and e\u0301 combining, ligature \ufb01, fullwidth ＡＢＣ, [SEP] and [MASK] said aloud",
    "x" * 120 + " " + "y" * 100,
    " ".join(f"In meeting {n} the group agreed to review proposal {n * 7}, and nobody objected." for n in range(1, 40)),
    "پشتیبان‌گیری شبانه و بازبینی هفتگی. " * 40,
    "SELECT id, name FROM users WHERE email LIKE '%@corp.io' AND deleted_at IS NULL; -- $1 ~ {json: [1,2]} `tick` ^caret |pipe|",
]


def main():
    model = sentence_transformers.SentenceTransformer(sys.argv[1], device="cpu")
    torch.set_num_threads(1)
    out = []
    for text in TEXTS:
        ids = model.tokenizer(text, truncation=True, max_length=256)["input_ids"]
        vector = model.encode(text, normalize_embeddings=True)
        out.append({"text": text, "ids": ids, "vector": [round(float(v), 6) for v in vector]})
    versions = f"sentence-transformers {sentence_transformers.__version__}, torch {torch.__version__}"
    print('{"made_with": ' + json.dumps(versions) + ', "texts": [')
    print(",\n".join(json.dumps(o, ensure_ascii=True, separators=(",", ":")) for o in out))
    print("]}")


if __name__ == "__main__":
    main()
