"""How estimators learn: fitting, streams of examples, class weights, averages."""
