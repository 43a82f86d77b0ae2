<?php
// A page that keeps fragments in APCu, under the visitor's number.
$key = 'fragment ' . $_SERVER['QUERY_STRING'];
$text = apcu_fetch($key);
if ($text === false) {
    $text = '';
    for ($i = 0; $i < 20; ++$i) $text .= "<p>" . md5($key . $i) . str_repeat(' words', mt_rand(5, 20)) . "</p>\n";
    apcu_store($key, $text, (int) $_SERVER['FRAGMENT_TTL']);
}
echo strlen($text);
