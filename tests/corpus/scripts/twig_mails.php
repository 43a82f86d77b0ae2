<?php
// A worker that writes mails by Twig. Templates have names for what differs, or are texts with the customer's name already in them: Twig
// makes a class of each text, and PHP forgets no class.
require "Twig/autoload.php";
[, $form, $seed] = $argv;
mt_srand((int)$seed);
$text = "<h1>Dear %s</h1>{%% for line in lines %%}<p>{{ line.article|upper }}: {{ line.price|number_format(2) }}{%% if line.price > 50 %%}, without costs" .
        "{%% endif %%}</p>{%% endfor %%}{%% if lines|length > 3 %%}Thank you for {{ lines|length }} lines, {{ name|default('you')|title }}.{%% endif %%}";
$twig = new Twig\Environment(new Twig\Loader\ArrayLoader(["mail" => sprintf($text, "{{ name }}")]));
$pause = mt_rand(90000, 160000);
for (;;) {
    $name = "customer " . mt_rand();
    $lines = [];
    for ($i = mt_rand(1, 12); $i > 0; --$i)
        $lines[] = ["article" => "article " . mt_rand(), "price" => mt_rand(1, 100)];
    $template = $form === "leaks" ? $twig->createTemplate(sprintf($text, $name)) : $twig->load("mail");
    $template->render(["name" => $name, "lines" => $lines]);
    usleep(mt_rand($pause >> 1, $pause + ($pause >> 1)));
}
