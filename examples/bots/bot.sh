#!/bin/sh
# A bot in shell: plays the first legal move.
while read -r line; do
    case $line in
        *'"type":"hello"'*) echo '{"type":"ready","name":"first move"}' ;;
        *'"type":"quit"'*) exit ;;
        *'"legal":["'*)
            legal=${line#*\"legal\":\[\"}
            echo "{\"type\":\"move\",\"move\":\"${legal%%\"*}\"}" ;;
    esac
done
