// Each page by the keyboard alone: Tab reaches each control, and the main thing that each page is for is
// done by Tab, arrows, Space, Enter and Escape.
import {must} from '../browser.mjs'

// The person at the keyboard: what a visitor does without a mouse.
const typist = v => ({
	goTo: async (role, name, within) => v.tabTo(await v.at(role, name, within)),
	follow: async (role, name, within) => {
		await v.tabTo(await v.at(role, name, within))
		await v.keys('Enter')
	},
	followFirst: async selector => {
		await v.tabTo(await v.page.waitForSelector(selector))
		await v.keys('Enter')
	},
	// opens opens a dialog by its button, and closes it: the focus comes back.
	opens: async selector => {
		const button = await v.page.waitForSelector(selector)
		await v.tabTo(button)
		await v.keys('Enter')
		await v.page.waitForSelector('dialog[open]')
		await v.keys('Escape')
		await v.holds(() => !document.querySelector('dialog[open]'))
		must(await button.evaluate(e => e === document.activeElement), `after the dialog of ${selector} the focus is elsewhere`)
	},
	tours: async where => {
		await v.settles()
		await v.tour(where)
	},
	signsIn: async key => {
		await v.go('/sign-in')
		await v.tabTo(await v.at('textbox', 'API key'))
		await v.page.keyboard.type(key)
		await v.keys('Enter')
	},
})
const named = name => `button::-p-text(${name})`

async function holder({come, key}) {
	const v = await come()
	const {goTo, follow, followFirst, opens, tours, signsIn} = typist(v)
	await signsIn(key)
	await v.holds(() => location.pathname === '/console/playground')
	await tours('playground')
	await (await v.page.$('.skip')).focus()
	await v.keys('Enter')
	must(await v.page.evaluate(() => document.activeElement.matches('main')), 'the first link does not skip the navigation')
	await goTo('radio', 'All')
	await v.keys('ArrowRight', 'ArrowRight')
	await v.holds(() => location.search.includes('type=image'))
	await followFirst('a[href*="model=theta-image-turbo"]')
	await goTo('textbox', 'Prompt')
	await v.page.keyboard.type('a heron [[sandbox: duration=1s]]')
	await opens(named('Copy as code'))
	await tours('form')
	await follow('button', 'Generate')
	await v.sees('Completed')
	await follow('link', 'Open the task')
	await v.sees('Timeline')
	await tours('task')
	await opens(named('Delete'))

	await follow('link', 'Tasks')
	await v.page.waitForSelector('.tasks-tasklist')
	await tours('tasks')
	await goTo('combobox', 'Type')
	await v.keys('ArrowDown')
	await v.holds(() => location.search.includes('type='))

	// The form of a key begins with the limits of the session's key, which has a quota.
	await follow('link', 'Keys')
	await follow('button', 'Create key')
	await v.holds(() => document.activeElement.matches('dialog[open] input'))
	await v.page.keyboard.type('by keyboard')
	await goTo('radio', 'Limited to a quota')
	await v.keys('ArrowUp')
	await v.holds(() => !document.querySelector('dialog[open]').innerText.includes('Quota in'))
	await v.keys('ArrowDown')
	await goTo('textbox', 'Quota in USD')
	await v.page.keyboard.type('5')
	await followFirst('dialog[open] button[type=submit]')
	await follow('button', 'I have saved it')
	await v.holds(() => !document.querySelector('dialog[open]'))
	await v.sees('by keyboard')
	await tours('keys')

	// Other scenarios have tasks of the same account: this endpoint is not told of those.
	await follow('link', 'Webhooks')
	await opens(named('Add endpoint'))
	await tours('webhooks')
	await follow('button', 'Add endpoint')
	await v.holds(() => document.activeElement.matches('dialog[open] input'))
	const url = 'http://127.0.0.1:9/keyboard'
	await v.page.keyboard.type(url)
	for (const type of ['task.completed', 'task.failed', 'task.cancelled', 'balance.low', 'key.quota_low']) {
		const box = await v.at('checkbox', type)
		if (await box.evaluate(e => e.checked) === (type === 'key.quota_low')) continue
		await v.tabTo(box)
		await v.keys('Space')
	}
	await followFirst('dialog[open] button[type=submit]')
	await follow('button', 'I have saved it')
	await follow('link', url)
	await v.at('button', 'Send test event')
	await tours('endpoint')
	await follow('button', 'Delete')
	await follow('button', 'Delete now')
	await v.sees('No endpoints')

	await follow('link', 'Account')
	await v.at('heading', 'Balance')
	await tours('account')
	await opens(named('Rotate secret'))
	await follow('link', 'Usage')
	await goTo('combobox', 'Group by')
	await v.keys('ArrowDown')
	await v.holds(() => location.search.includes('by=key'))
	await follow('button', 'Show statement')
	await v.sees('Closing balance')
	await tours('usage')
	await v.leave()
}

async function operator({come, admin}) {
	const v = await come()
	const {goTo, follow, followFirst, opens, tours, signsIn} = typist(v)
	await signsIn(admin)
	await v.holds(() => location.pathname === '/console/operator')
	await v.at('heading', 'Stuck tasks')
	await tours('stuck tasks')
	await v.go('/operator?stuck=all')
	await followFirst('a[href*="/operator/tasks/task_"]')
	await v.sees('Timeline')
	await tours('story')

	await follow('link', 'Channels', 'nav')
	await v.at('heading', 'Channels')
	await tours('channels')
	await opens('button[aria-label^="Drain "]')

	await follow('link', 'Accounts', 'nav')
	await v.at('heading', 'Accounts')
	await tours('accounts')
	await followFirst('a[href*="/operator/accounts/acc_"]')
	await v.at('button', 'Suspend')
	await tours("an operator's view of an account")
	await opens(named('Grant'))

	await follow('link', 'Ledger', 'nav')
	await v.at('heading', 'Ledger')
	await tours('ledger')
	await follow('button', 'Check now')
	await v.sees('Ledger OK')

	await follow('link', 'Audit', 'nav')
	await v.at('heading', 'Audit')
	await tours('audit')
	await goTo('combobox', 'Action')
	await v.keys('ArrowDown')
	await v.holds(() => location.search.includes('action='))
	await v.leave()
}

export default async given => {
	await holder(given)
	await operator(given)
}
