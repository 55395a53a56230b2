// On a phone the result is below the form: what was just asked for comes into sight. A form
// whose fields depend on each other, in which what is hidden is kept and not sent.
import {must} from '../browser.mjs'

export default async ({come, key}) => {
	const v = await come()
	await v.page.setViewport({width: 390, height: 844})
	await v.signIn(key)
	await v.go('/playground?model=theta-image-turbo')
	await v.fill('textbox', 'Prompt', 'a heron')
	await v.press('button', 'Generate')
	await v.page.waitForSelector('.playground-result .task')
	await v.sees('Completed')
	const top = await v.page.evaluate(() => document.querySelector('.playground-result').getBoundingClientRect().top)
	must(top >= -1 && top < 422, `the result begins ${top} pixels below the top of the screen`)
	if (v.pictures) await v.inspect('phone-result')

	// The prompt of the picture goes along to the songs, where it would be lyrics.
	await v.go('/playground?model=music-a')
	const description = await v.at('textbox', 'Description')
	await description.type('a calm song')
	const custom = await v.at('checkbox', 'Custom')
	await custom.click()
	await v.at('textbox', 'Lyrics')
	await custom.click()
	await v.holds(() => document.querySelector('#root_gpt_description')?.value === 'a calm song')
	await v.press('button', 'Copy as code')
	const code = await (await v.page.waitForSelector('dialog[open] pre')).evaluate(e => e.innerText)
	must(code.includes('a calm song') && !code.includes('a heron'), `the request is ${code}`)
	await v.leave()
}
