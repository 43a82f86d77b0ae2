<?php
// A worker whose log is written only when there is an error, with what came before it: the last 200 records, or all since the
// start, as is Monolog's default (bufferSize 0). There is no error.
require "Monolog/autoload.php";
[, $form, $seed] = $argv;
mt_srand((int)$seed);
$log = new Monolog\Logger("worker");
$file = new Monolog\Handler\StreamHandler("worker.log");
$log->pushHandler(new Monolog\Handler\FingersCrossedHandler($file, Monolog\Logger::ERROR, $form === "leaks" ? 0 : 200));
$pause = mt_rand(14000, 28000);
for ($job = 1; ; ++$job) {
    $rows = [];
    for ($i = mt_rand(5, 25); $i > 0; --$i)
        $rows[] = ["id" => mt_rand(), "text" => str_repeat("w", mt_rand(10, 90))];
    $log->debug("job $job: rows", ["rows" => $rows, "sum" => array_sum(array_column($rows, "id"))]);
    if ($job % 20 === 0)
        $log->info("job $job is done");
    usleep($pause);
}
