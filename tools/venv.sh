#!/bin/sh
# Makes a virtual environment, and nothing if there is one that works.
# usage: tools/venv.sh PYTHON FOLDER
set -eu
python=$1
folder=$2

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || {
    echo "cannot use '$python': Braid needs Python 3.11 or newer (choose one: make PYTHON=python3.12 …)" >&2
    exit 1
}

"$folder/bin/python" -m pip --version >/dev/null 2>&1 && exit

# Debian's Python comes without the part that makes environments.
if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "installing $package with apt-get"
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq && apt-get install -qq -y --no-install-recommends "$package" || true
    fi
fi

"$python" -m venv --clear "$folder" || {
    echo "cannot make $folder: '$python' lacks ensurepip or venv (Debian and Ubuntu: apt-get install ${package:-python3-venv})" >&2
    exit 1
}
