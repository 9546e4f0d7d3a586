#!/usr/bin/env bash
# Makes the tasks of the packages that come along again: benches/mutants/builtin.sh [OPTIONS of etude data mutate]
# Terse, normal and detailed issues take turns by package.
set -euo pipefail

cd "$(dirname "$0")/../../studies/repair/packages"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
styles=(terse normal detailed)
number=0
for package in */; do
    name=${package%/}
    "${ETUDE:-etude}" data mutate "$name" --out "$scratch/$name.jsonl" --framework unittest --count 24 \
        --style "${styles[number % 3]}" "$@"
    # The folder of a package that comes along is known by its name.
    sed "s#\"folder\":\"$name.sources/[^\"]*\"#\"folder\":\"$name\"#" "$scratch/$name.jsonl" > "$name.jsonl"
    number=$((number + 1))
done
