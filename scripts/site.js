// Finds the sections that have all words of the question, which is in the
// address. The index is a script, because a page from the disk may not read
// other files.
'use strict';

const SHOWN = 200;	// characters of a section

const question = new URLSearchParams(location.search).get('q') || '';
const words = question.toLowerCase().split(/\s+/).filter(Boolean);

function count(text, word) {
	return text.toLowerCase().split(word).length - 1;
}

// 0 without one of the words. A heading counts more than any long text.
function rate([, title, heading, text]) {
	let sum = 0;
	for (const word of words) {
		const here = 20 * count(heading, word) + 5 * count(title, word) +
			Math.min(count(text, word), 5);
		if (here === 0)
			return 0;
		sum += here;
	}
	return sum;
}

function add(parent, tag, text) {
	const element = document.createElement(tag);
	element.textContent = text;
	return parent.appendChild(element);
}

function show([address, title, heading, text]) {
	const item = add(document.getElementById('results'), 'li', '');
	const link = add(item, 'a', heading && heading !== title ?
		`${title}: ${heading}` : title);
	link.href = address;
	const at = text.toLowerCase().indexOf(words[0]) - SHOWN / 4;
	add(item, 'p', text.slice(Math.max(0, at)).slice(0, SHOWN));
}

const found = sections.map((section) => [rate(section), section])
	.filter(([rating]) => rating > 0)
	.sort(([one], [other]) => other - one);
document.querySelector('input[name=q]').value = question;
document.getElementById('found').textContent = words.length === 0 ?
	'Write words into the field above.' :
	`${found.length} sections have: ${words.join(' ')}`;
found.forEach(([, section]) => show(section));
