#!/usr/bin/env bash
# Repair tasks out of real packages: benches/mutants/make.sh FOLDER [PYTHON]
# Fetches the packages of packages.txt by name, version and digest, and writes FOLDER/mutants.jsonl.
# COUNT tasks a package [20], SEED [0], ETUDE the program [etude]. What is there is not made again.
set -euo pipefail

folder=${1:?say where the tasks are to go: make.sh FOLDER [PYTHON]}
base=${2:-python3}
here=$(cd "$(dirname "$0")" && pwd)
etude=${ETUDE:-etude}
mkdir -p "$folder"
cd "$folder"

python=$PWD/environment/bin/python
if [ ! -x "$python" ]; then
    "$base" -m venv environment
    "$python" -m pip install --quiet -r "$here/environment.txt"
fi
if [ ! -d packages ]; then
    rm -rf archives unpacked
    # Building metadata is part of how pip looks at an archive; the digests are those of the index.
    # What they are built with may be binary: from source it needs itself.
    names=$(grep -o '^[A-Za-z0-9._-]*==' "$here/packages.txt" | tr -d = | paste -sd, -)
    "$python" -m pip download --quiet --no-deps --no-binary "$names" --require-hashes \
        -r "$here/packages.txt" -d archives
    mkdir unpacked
    for archive in archives/*.tar.gz; do
        tar -xzf "$archive" -C unpacked
    done
    mv unpacked packages
fi

files=()
for path in packages/*/; do
    name=$(basename "$path" | sed 's/-[0-9][0-9.]*$//')
    files+=("$name.jsonl")
    [ -e "$name.jsonl" ] || "$etude" data mutate "$path" --out "$name.jsonl" --name "$name" \
        --count "${COUNT:-20}" --seed "${SEED:-0}" --python "$python"
done
# In turn, so that the first so many are of all packages alike.
paste -d '\n' "${files[@]}" | sed '/^$/d' > mutants.jsonl.draft
mv mutants.jsonl.draft mutants.jsonl
wc -l mutants.jsonl
