// The request as code: each program that the page shows makes the task, waits, and saves the file, the one of the first
// steps too. What is refused is shown. The prompt has what shells and languages may trip over.
import {ask, must} from '../browser.mjs'

const hard = `it's a "red" boat, $HOME and \`ls\` and \\ too [[sandbox: duration=1s]]`

export default async ({come, base, key}) => {
	const v = await come()
	await v.signIn(key)
	const newest = async () => (await (await fetch(`${base}/v1/tasks?limit=1&prompt=true`, {headers: {Authorization: `Bearer ${key}`}})).json()).data[0]

	const firstCall = await (await v.page.waitForSelector('.playground-firststeps pre code')).evaluate(e => e.textContent)
	const made = await ask('run', {language: 'curl', code: firstCall, file: 'result.png'})
	must(made.code === 0 && made.bytes > 100, `the first call: ${JSON.stringify(made)}`)
	const refused = await ask('run', {language: 'curl', code: firstCall, file: 'result.png', key: 'mgk_wrong'})
	must(refused.code !== 0 && refused.bytes === 0 && /401/.test(refused.output), `the first call, refused: ${JSON.stringify(refused)}`)

	// programs reads the code of each language.
	const programs = async () => {
		await v.press('button', 'Copy as code')
		await v.page.waitForSelector('dialog[open] pre')
		const shown = await v.page.evaluate(() => [...document.querySelectorAll('dialog[open] .segment')].map(l => l.innerText.trim()))
		const read = []
		for (const language of shown) {
			await v.page.evaluate(language => [...document.querySelectorAll('dialog[open] .segment')].find(l => l.innerText.trim() === language).click(), language)
			await v.holds(language => document.querySelector('dialog[open] .segment:has(input:checked)').innerText.trim() === language, language)
			read.push({language, code: await v.page.evaluate(() => document.querySelector('dialog[open] pre code').textContent)})
		}
		return read
	}

	await v.go('/playground?model=theta-image-turbo')
	await v.fill('textbox', 'Prompt', hard)
	const tasks = await programs()
	must(tasks.length === 8, `the languages are ${tasks.map(p => p.language)}`)
	await v.inspect('code')
	for (const program of tasks) {
		const made = await ask('run', program)
		must(made.code === 0 && made.bytes > 100, `${program.language}: ${JSON.stringify(made)}`)
		const task = await newest()
		must(task.prompt === hard && made.output.includes(task.id), `${program.language} asked for ${task.prompt}`)
		must(program.language.includes('client') || /idempotency|-key/i.test(program.code), `${program.language} has no idempotency key`)
		const refused = await ask('run', {...program, key: 'mgk_wrong'})
		must(refused.code !== 0 && /401|key/i.test(refused.output), `${program.language}, refused: ${JSON.stringify(refused)}`)
	}
	await v.page.keyboard.press('Escape')

	await v.go('/playground?model=eta-4o-mini-tts')
	await v.fill('textbox', 'Text', `it's "seven" o'clock`)
	const speeches = await programs()
	must(speeches.length === 4, `the languages are ${speeches.map(p => p.language)}`)
	for (const program of speeches) {
		const made = await ask('run', program)
		must(made.code === 0 && made.bytes > 100, `${program.language}: ${JSON.stringify(made)}`)
		const refused = await ask('run', {...program, key: 'mgk_wrong'})
		must(refused.code !== 0 && /401|key/i.test(refused.output), `${program.language}, refused: ${JSON.stringify(refused)}`)
	}
	await v.leave()
}
