<?php // A daemon with a static cache that is bounded, or not.
[$form, $seed] = [$argv[1], (int)$argv[2]];
mt_srand($seed);
function lookup(int $key, string $form): array {
    static $cache = [];
    if (isset($cache[$key])) return $cache[$key];
    $row = json_decode(json_encode(['id' => $key, 'name' => str_repeat('n', mt_rand(20, 600)), 'tags' => range(1, 8)]), true);
    if ($form == 'steady' && count($cache) >= 500) unset($cache[array_key_first($cache)]);
    return $cache[$key] = $row;
}
while (true) {
    for ($i = 0; $i < 2; ++$i) lookup(mt_rand(), $form);
    usleep(25000);
}
