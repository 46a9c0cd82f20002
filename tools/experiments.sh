#!/bin/sh
# All that is published of the experiments, by the commands that made it: results that are there stay.
# Options given, such as --jobs 2, go to each. BIN is the folder of Python. A score is the mean of three
# seeds, of five where two rows are compared.
set -e

run() {
    "${BIN:-.venv/bin}/python" -m studies "$@"
}

few=Perceptron,LaSOp_1,LaSOp_5,LaSOa_1,LaSOa_5
wide=LaSOp_25,LaSOa_25,LaSOp_inf,LaSOa_inf
run table1 --features paper --resources lists --rows $few --seeds 5 "$@"
run table1 --features paper --resources lists --rows SemiCRF,$wide --seeds 5 "$@"
run table1 --features rich --rows LaSOp_5,LaSOa_5 --seeds 3 "$@"
run table1 --features rich --resources clusters,lists --rows LaSOp_5,LaSOa_5 --seeds 3 "$@"
run additions "$@"
for resources in clusters lists clusters,lists; do
    run additions --rows rich --resources $resources "$@"
done
run margins --resources lists "$@"
run average1 --rows LaSOp_5 "$@"
run average1 --resources clusters,lists --rows LaSOp_5 "$@"
run table2 --resources all --seeds 5 "$@"
run table2 --rows LaSOp_1,LaSOp_5,LaSOp_10,LaSOa_1,LaSOa_5,LaSOa_10 --seeds 5 "$@"
run table3 --resources all --seeds 3 "$@"
run updates --resources all --seeds 5 "$@"
run theorem4 "$@"
run ewt --seeds 3 "$@"
run parsing --seeds 3 "$@"
