require_relative 'item'

# Sells items.
class Shop < Base
  def sell(item)
    item.wrap
  end
end
