class Base; end

class Item
  def wrap
    tie
  end

  def tie; end
end
